"""Live metrics for Prometheus: of a worker's own rows, and of all that workers told the master."""
