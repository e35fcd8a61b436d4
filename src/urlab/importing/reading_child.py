"""The child process that reads what may take much memory: a model with much XML, or the heights of a picture."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from urlab.errors import ImportFailed
from urlab.importing.bundle import packed, packed_failure
from urlab.importing.formats import model_bundle
from urlab.importing.heightfields import heightfield_bundle, heights_of
from urlab.importing.limited_process import serve_once
from urlab.importing.mjcf_document import NotXml
from urlab.importing.sources import ImportLimits, SourceFiles
from urlab.paths import FileRoots


def read_model(task: bytes) -> bytes:
    """Serve `ModelFormat`: the task is JSON."""
    asked = json.loads(task)
    roots = FileRoots(read=tuple(map(Path, asked["read"])), own_rights=asked["own_rights"])
    sources = SourceFiles(roots, ImportLimits(**asked["limits"]), is_child=True)
    return packed(*model_bundle(Path(asked["source"]), sources))


def read_heights(task: bytes) -> bytes:
    """Serve `image_bundle`: the task is one line of JSON, then the content of the file."""
    line, _, content = task.partition(b"\n")
    asked = json.loads(line)
    return packed(heightfield_bundle(asked["name"], heights_of(Path(asked["path"]), content), tuple(asked["size_m"])))


_SERVED: dict[str, Callable[[bytes], bytes]] = {"model": read_model, "heights": read_heights}


def read(what: str, task: bytes) -> bytes:
    """Serve a task; what is wrong with the files is part of the result."""
    try:
        return _SERVED[what](task)
    except ImportFailed as failed:
        return packed_failure({"failed": failed.message})
    except NotXml as broken:
        return packed_failure({"not_xml": broken.path, "line": broken.line}, broken.text)


if __name__ == "__main__":
    serve_once(lambda task: read(sys.argv[1], task))
