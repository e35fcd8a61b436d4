"""The evaluation server: HTTP requests in, replies of the workers out.

`app` is the ASGI application, its process, and what every request passes first (token, size of the body). `routes` are
the endpoints, where `bodies` and `pickles` read the body; `service` does what an endpoint means, on the event loop.
"""
