"""The child process that reads one mesh file. Its task is a MeshTask, its result a MeshResult, both as msgpack."""

import msgspec

from urlab.compile.decomposition.child_side import serve_once
from urlab.compile.importing.mesh_reader import MeshTask, read_mesh


def read(task: bytes) -> bytes:
    """The mesh, as one OBJ file."""
    return msgspec.msgpack.encode(read_mesh(msgspec.msgpack.decode(task, type=MeshTask)))


if __name__ == "__main__":
    serve_once(read)
