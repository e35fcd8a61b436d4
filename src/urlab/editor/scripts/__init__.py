"""What we add to viser's page: scripts that run in the browser, and the Python that they talk to.

`keys` are the keyboard and the pad, told key by key; `appearance` is how the page looks beside what viser draws;
`uploads` refuses files that are too large.
"""
