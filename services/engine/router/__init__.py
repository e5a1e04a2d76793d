"""A small router in front of replicas of an engine."""
