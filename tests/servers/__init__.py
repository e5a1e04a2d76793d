"""Real inference servers and monitoring for tests: how each is started on this machine, and ended by its pid."""
