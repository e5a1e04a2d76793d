"""The load generator's figures, beside those of its peers and of the fastest possible client: see `__main__`."""
