"""Levels and model files in, one immutable `CompiledScene` out: a MuJoCo model and the maps of its names.

`blueprint` parses a model, and `library` keeps each one that was loaded; `assemble`, `attach` and `scene_settings` put
the actors of a level into one spec; `compiler` compiles it, and `bind` makes the `compiled_scene`'s maps of names.
`scaling`, and `static_mesh` with `hulls`, change a model before it is placed: its size, and quick convert. `inspection`
and `bounds` describe a model before anything plays; `export` writes a compiled scene as files.
"""

from urlab.compile.compiled_scene import CompiledArticulation, CompiledEntity, CompiledScene
from urlab.compile.compiler import compile_scene

__all__ = ["CompiledArticulation", "CompiledEntity", "CompiledScene", "compile_scene"]
