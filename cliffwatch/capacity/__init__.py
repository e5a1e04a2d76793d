"""The highest rate (or number of users) at which an SLO file holds: evidence, verdict, search, answer. All pure.

The shell sends the load (`loadgen.capacity`); every decision is made here, as a function of what the probes showed.
"""
