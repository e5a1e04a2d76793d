"""This host's own bias: the client against a server that knows to the nanosecond when it wrote."""
