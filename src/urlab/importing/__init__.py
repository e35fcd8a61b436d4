"""Files in, imports of the project out: read, made self-contained, compiled once in a child process, stored.

`pipeline` is the way of one file: its format (`formats`) reads it through `sources` into a `bundle`; for models
`mjcf_document`, `xml_tags` and `model_rewriter` gather the files that it refers to; `check` compiles it in a child
process; `store` puts its folder in place. `heightfields` makes ground from heights, `hulls` cuts meshes into convex
pieces, `uploads` takes files that clients send. `limited_process` runs the children (`reading_child`, `check_child`,
`mesh_child`, `hulls.child`), and `confine` sets their limits.
"""

from urlab.importing.limited_process import StopSwitch
from urlab.importing.pipeline import add_import, import_file
from urlab.importing.store import sweep_stored
from urlab.importing.uploads import Upload, store_upload

__all__ = ["StopSwitch", "Upload", "add_import", "import_file", "store_upload", "sweep_stored"]
