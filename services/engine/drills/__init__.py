"""Faults on demand: what can go wrong with an engine, when, and what it does to the one that is played."""
