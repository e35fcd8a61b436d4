"""Measurements of the server against floors of the same machine; `make bench` runs them. Not part of the package."""
