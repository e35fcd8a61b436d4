"""The protocol's ops: a request frame in, a reply frame out.

`dispatcher` reads a frame (`parsing`, which also has checks that handlers share), finds its `session` and calls the
handler of its op (`handlers`), which works on a `context`.
"""

from urlab.ops import handlers
from urlab.ops.context import HANDLERS, Context, Parts, handler
from urlab.ops.dispatcher import Dispatcher
from urlab.ops.parsing import read_catalogue, request_key

__all__ = ["HANDLERS", "Context", "Dispatcher", "Parts", "handler", "handlers", "read_catalogue", "request_key"]
