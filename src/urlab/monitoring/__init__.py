"""How a process does.

`metrics` counts and measures, for Prometheus.
"""
