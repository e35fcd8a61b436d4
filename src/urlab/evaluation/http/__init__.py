"""The evaluation server: HTTP requests in, replies of the workers out.

`app` is the ASGI application and its process. A request passes `gate` (token, size of the body) and `routes` (the
endpoints), where `bodies` and `pickles` read its body; `service` does what the endpoint means, on the event loop.
"""
