"""Runs: what a server is to do and has done, and the program that drives policies through one.

Used by the server: `job` (which episodes are wanted, and by which worker each is run) and `results` (the folder of a
run, written and read). Used by the driving side: `plan` (what a run is to do, and its conditions), `client` (HTTP) and
`runner` (a server if there is none, a policy for each worker, the outcome).
"""
