"""The SLO service: API and web page over a folder of runs and SLOs on a Prometheus; no state a replica would lack."""
