"""Noise in the pictures of cameras: parameters of a randomisation, and the numbers that are added to pixels.

``camera`` has ``noise_std`` for colours (a share of full brightness, in each channel) and ``depth_noise_std`` for
depths (m). The noise of a picture depends on the seed, the camera and the simulated time alone, so that the same step
of the same seed has the same picture however often it is drawn. Segmentations have none.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from urlab.compile.compiled_scene import CompiledScene
from urlab.errors import BadValue
from urlab.physics.queries import compiled_name
from urlab.scene.randomisation import generator
from urlab_wire.enums import CameraMode
from urlab_wire.ops.stepping import ModelChange

NOISE_FIELDS: Mapping[str, Sequence[str]] = {"camera": ("noise_std", "depth_noise_std")}

_FIELD_OF_MODE = {CameraMode.REAL: "noise_std", CameraMode.DEPTH: "depth_noise_std"}


class CameraNoise:
    """The noise of one scene's cameras. `begin` replaces a value that the GL thread reads."""

    def __init__(self, scene: CompiledScene) -> None:
        model = scene.model
        self._names = tuple(name for name in (model.camera(index).name for index in range(model.ncam)) if name)
        self._prefixes = tuple(one.actor.name for one in scene.placed)
        self._seed = 0
        self.amounts: Mapping[tuple[str, str], float] = {}
        """By camera and field; empty when there is no noise at all."""

    def names(self, kind: str, field: str) -> Sequence[str]:  # noqa: ARG002 - the same for all
        """The compiled names of the cameras."""
        return self._names

    def find(self, kind: str, name: str, field: str) -> str:  # noqa: ARG002
        """The compiled name that ``name`` means; BadValue lists those that exist."""
        return compiled_name("camera", name, self._names, self._prefixes, BadValue)

    def width(self, kind: str, name: str, field: str) -> tuple[int, int]:  # noqa: ARG002
        """One number."""
        return 1, 1

    def limits(self, kind: str, name: str, field: str) -> tuple[float, float]:  # noqa: ARG002
        """No noise is negative."""
        return 0.0, np.inf

    def value(self, kind: str, name: str, field: str) -> list[float]:  # noqa: ARG002
        """Without randomisation there is none."""
        return [0.0]

    def begin(self, changes: Iterable[ModelChange], seed: int) -> None:
        """Have this noise from here on, and none of before."""
        self._seed = seed
        self.amounts = {(one.name, one.field): float(one.value[0]) for one in changes}

    def add(self, pixels: NDArray[Any], camera: str, mode: CameraMode, sim_time: float) -> None:
        """Add to the pixels of a picture, in place: BGRA bytes in words, or metres."""
        field = _FIELD_OF_MODE.get(mode)
        std = self.amounts.get((camera, field), 0.0) if field is not None else 0.0
        if not std:
            return
        rng = generator(self._seed, "picture", camera, sim_time.hex())
        if mode is CameraMode.DEPTH:
            pixels += np.float32(std) * rng.standard_normal(pixels.shape, np.float32)
            np.maximum(pixels, 0, out=pixels)
            return
        colors = pixels.view(np.uint8).reshape(*pixels.shape, 4)[..., :3]
        noise = np.float32(255 * std) * rng.standard_normal(colors.shape, np.float32)
        colors[:] = np.clip(np.rint(colors + noise), 0, 255)
