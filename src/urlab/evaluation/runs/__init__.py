"""Runs: their jobs and folders, which the server keeps, and the client and runner that drive policies through one."""
