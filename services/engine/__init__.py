"""The stand-in inference engine: an OpenAI-compatible server with the latency of a measured one, without a GPU."""
