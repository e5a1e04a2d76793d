"""`cliffwatch capacity`: sends the probes that `cliffwatch.capacity` asks for, each a `cliffwatch run` of its own."""
