"""The SLO service: a read-only API and web page over a folder of runs. It keeps no state that a replica would lack."""
