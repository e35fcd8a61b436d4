"""The client for programs of asyncio: what `URLabClient` and its parts ask of the server, awaited.

`part` runs calls on the thread of one client, and makes methods that are awaited of plain ones; `namespaces`, `batch`
and `client` are made of it.
"""

from urlab_client.awaited.batch import AsyncBatch
from urlab_client.awaited.client import AsyncURLabClient

__all__ = ["AsyncBatch", "AsyncURLabClient"]
