"""Changes of a running model, in layers that can be taken away again: until play stops, and until the next reset.

The changes are tried on a copy of the model first, where mj_setConst works out what follows from them; then every
array that differs is copied into the running model. So nothing is half applied, no drawing thread sees a model that is
being worked out, and without changes the model is the compiled one again, bit for bit. The model's statistics (extent,
mean mass and so on) stay those of the compiled one, as mj_setConst leaves them.
"""

import copy
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.errors import BadValue
from urlab.physics.engine import Engine
from urlab.physics.parameters import DERIVED_FROM, ModelParameters, array_of, write_model
from urlab_wire.ops.stepping import ModelChange, ModelWrite, ModelWrites

_LARGE = (
    "mesh_", "tex_", "hfield_data", "skin_", "flex_", "names", "paths", "text_", "name_", "bvh_child", "oct_", "key_",
)  # fmt: skip
"""Beginnings of the names of arrays that no change reaches."""

_versions = itertools.count(1)


class ModelChanges:
    """What is changed in the model of one engine. The owner of the physics lock calls it, but for `check`."""

    def __init__(self, engine: Engine, prefixes: Iterable[str] = ()) -> None:
        self.parameters = ModelParameters(engine.model, prefixes)
        self._engine = engine
        self._until_stop: dict[tuple[str, str, str], ModelChange] = {}
        self._until_reset: dict[tuple[str, str, str], ModelChange] = {}
        self._written: dict[str, NDArray[Any]] = {}  # of options: what they were before, and what we wrote
        self._trial: _Trial | None = None
        self.version = 0
        """Grows whenever a model changes, of this play or another; 0 before. Any thread may read it."""

    def check(self, changes: Iterable[ModelChange]) -> list[ModelChange]:
        """The changes with compiled names and lists of numbers; BadValue or DimMismatch for the first wrong one."""
        return [self.parameters.checked(one) for one in changes]

    def set(self, changes: Sequence[ModelChange], *, until_reset: bool) -> ModelWrites:
        """Apply `check`-ed changes on top of those in force; BadValue, and nothing is changed, if MuJoCo refuses."""
        new = {_key(one): one for one in changes}
        if until_reset:
            return self._apply(self._until_stop, {**self._until_reset, **new})
        rest = {key: one for key, one in self._until_reset.items() if key not in new}
        return self._apply({**self._until_stop, **new}, rest)

    def begin_anew(self, changes: Sequence[ModelChange] = ()) -> ModelWrites | None:
        """Take the changes until a reset away, and apply these instead; None when the model stays as it is."""
        if not changes and not self._until_reset:
            return None
        return self._apply(self._until_stop, {_key(one): one for one in changes})

    def _apply(self, until_stop: dict[Any, ModelChange], until_reset: dict[Any, ModelChange]) -> ModelWrites:
        before = self.parameters.writes([*self._until_stop.values(), *self._until_reset.values()])
        wanted = self.parameters.writes([*until_stop.values(), *until_reset.values()])
        derive = any(one.array in DERIVED_FROM for one in (*before, *wanted))
        engine = self._engine
        if self._trial is None:
            self._trial = _Trial(engine.model)
        with engine.model_lock:
            self._trial.become([one for one in wanted if not _is_option(one)], derive=derive)
            options = self._options(before, wanted)
            self._trial.copy_out()
            write_model(engine.model, options)
            engine.options_changed()
        self._until_stop, self._until_reset = until_stop, until_reset
        self.version = next(_versions)
        return ModelWrites(writes=_in_force(engine.model, [*before, *wanted]), derive=derive)

    def _options(self, before: Sequence[ModelWrite], wanted: Sequence[ModelWrite]) -> list[ModelWrite]:
        """Writes of options: back to what they were, unless set_sim_options has set them since; then what is wanted."""
        model, writes = self._engine.model, {}
        ours = {one.array: one.values for one in before if _is_option(one)}
        for name, values in ours.items():
            if array_of(model, name).tolist() == values and name in self._written:
                writes[name] = ModelWrite(array=name, start=0, values=self._written[name].tolist())
            self._written.pop(name, None)
        for one in wanted:
            if _is_option(one):
                former = writes.get(one.array)
                self._written[one.array] = np.array(former.values if former else array_of(model, one.array).copy())
                writes[one.array] = one
        return list(writes.values())


class _Trial:
    """A copy of the compiled model, on which changes are tried, and its arrays as they were compiled."""

    def __init__(self, model: Any) -> None:
        self.model = copy.copy(model)
        self._data = mujoco.MjData(self.model)
        names = [
            name
            for name in dir(model)
            if not name.startswith(("_", *_LARGE)) and isinstance(getattr(model, name), np.ndarray)
        ]
        arrays = [(getattr(model, name), getattr(self.model, name)) for name in names]
        self._arrays = [(running, tried, tried.copy()) for running, tried in arrays if tried.size]
        """Those of the running model and of the copy, and what they were compiled to."""

    def become(self, writes: Sequence[ModelWrite], *, derive: bool) -> None:
        """The compiled model with these writes; BadValue when MuJoCo cannot work out what follows from them."""
        self._restore()
        write_model(self.model, writes)
        if derive and writes:
            try:
                mujoco.mj_setConst(self.model, self._data)
            except mujoco.FatalError as refused:
                self._restore()
                raise BadValue(f"MuJoCo cannot run this model with these parameters: {refused}") from None

    def _restore(self) -> None:
        for _, tried, compiled in self._arrays:
            np.copyto(tried, compiled)

    def copy_out(self) -> None:
        """Copy every array that differs into the running model."""
        for running, tried, _ in self._arrays:
            if running.tobytes() != tried.tobytes():
                np.copyto(running, tried)


def _key(change: ModelChange) -> tuple[str, str, str]:
    return change.kind, change.name, change.field


def _is_option(write: ModelWrite) -> bool:
    return write.array.startswith("opt.")


def _in_force(model: Any, writes: Iterable[ModelWrite]) -> list[ModelWrite]:
    """What the model has now at the places of these writes."""
    places = dict.fromkeys((one.array, one.start, len(one.values)) for one in writes)
    return [
        ModelWrite(array=name, start=start, values=array_of(model, name).reshape(-1)[start : start + width].tolist())
        for name, start, width in places
    ]
