"""What a view of the world shows: the running scene, or the edited level as it would start."""

import threading
from typing import Any

import mujoco

from urlab.compile import CompiledScene, compile_scene
from urlab.manager.articulation import go_to_start
from urlab.manager.play import Play
from urlab.scene.level import Level
from urlab.viewport import PosedModel


class StageSource:
    """Gives that model and state. Any thread may call it; an edited level is compiled once per edit."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._lock = threading.Lock()
        self._edited: tuple[Level, PosedModel] | None = None

    def __call__(self) -> PosedModel:
        """The world as it is now; CompileError when the edited level cannot be compiled."""
        if self._play.is_playing:
            return self._running()
        with self._lock:
            level = self._play.world.level
            if self._edited is None or self._edited[0] is not level:
                self._edited = (level, _at_start(compile_scene(level, self._play.world.library)))
            return self._edited[1]

    def _running(self) -> PosedModel:
        engine = self._play.manager.engine
        seen = engine.snapshot
        return PosedModel(
            key=id(engine),
            model=engine.model,
            qpos=seen.qpos,
            mocap_pos=seen.mocap_pos,
            mocap_quat=seen.mocap_quat,
            sim_time=seen.sim_time,
        )


def _at_start(scene: CompiledScene) -> PosedModel:
    data: Any = mujoco.MjData(scene.model)
    for articulation in scene.articulations:
        go_to_start(articulation, scene.model, data)
    return PosedModel(
        key=id(scene.model),
        model=scene.model,
        qpos=data.qpos.copy(),
        mocap_pos=data.mocap_pos.copy(),
        mocap_quat=data.mocap_quat.copy(),
        sim_time=None,
    )
