"""From models and scenes to MuJoCo: the only bridge between what exists and what is simulated."""

from urlab.compile.compiled_scene import CompiledArticulation, CompiledEntity, CompiledScene
from urlab.compile.compiler import compile_scene

__all__ = ["CompiledArticulation", "CompiledEntity", "CompiledScene", "compile_scene"]
