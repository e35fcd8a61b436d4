"""How a process does.

`metrics` counts and measures, for Prometheus; `watchdog` tells of threads that do not turn.
"""
