"""How a process does.

`metrics` counts and measures, for Prometheus; `watchdog` tells of threads that do not turn; `log_buffer` has the newest
records of the log.
"""
