"""The HTTP side of evaluation: bodies, endpoints and the server process."""
