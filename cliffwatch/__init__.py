"""Cliffwatch: load generation and SLO monitoring for LLM inference servers (the pure core)."""

__version__ = "0.1.0"
