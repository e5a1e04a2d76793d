"""Latency over the dimensions of the traffic."""
