"""The local MuJoCo model and data of a client, brought up to date when somebody looks."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import mujoco

from urlab_client.handles.articulation import URLabArticulation
from urlab_client.handles.entity import URLabEntity
from urlab_client.mirror import Mirror


class LocalData:
    """``model`` and ``data``, both None where there is no local model.

    Nobody can tell that data is late: a look brings it up to date, and from the first look at ``data`` on, which the
    caller may keep, every reply is brought into it at once. Handles look without keeping anything.
    """

    def __init__(self) -> None:
        self._model: Any = None
        self._data: Any = None
        self._watched = False
        self._mirror: Mirror | None = None
        self._data_lock = threading.RLock()

    @property
    def model(self) -> Any:
        """The local MjModel, or None."""
        self._evaluated_data()  # with the model as it is: the caller may be about to change it
        return self._model

    @model.setter
    def model(self, model: Any) -> None:
        self._model = model

    @property
    def data(self) -> Any:
        """The local MjData, or None. Whoever has seen it may keep it: every later step brings it up to date."""
        if not self._watched:
            with self._data_lock:
                self._evaluated_data()
                self._watched = self._data is not None
        return self._data

    @data.setter
    def data(self, data: Any) -> None:
        with self._data_lock:
            self._evaluated_data()
            self._data, self._watched = data, data is not None

    def _evaluated_data(self) -> Any:
        """The data, current, for a caller who does not keep it."""
        mirror = self._mirror
        if mirror is not None and not mirror.settled:
            with self._data_lock:
                mirror.settle()
        return self._data

    def _written_data(self) -> Any:
        """The data, of which only the state (qpos, qvel, ...) is current, for a caller who does not keep it."""
        mirror = self._mirror
        if mirror is not None and not mirror.written:
            with self._data_lock:
                mirror.write()
        return self._data

    def _renew_data(self, model: Any) -> None:
        """Begin with new data, which nobody has seen yet. The caller holds the lock."""
        self._mirror = None
        self._model, self._data, self._watched = model, None, False
        if model is not None:
            self._data = mujoco.MjData(model)
            mujoco.mj_forward(model, self._data)

    def _mirror_into_data(self, articulations: Sequence[URLabArticulation], entities: Sequence[URLabEntity]) -> None:
        """Let replies about these handles go into the data, where there is one. The caller holds the lock."""
        self._evaluated_data()
        self._mirror = None
        if self._model is not None and self._data is not None:
            self._mirror = Mirror(self._model, self._data, articulations, entities)

    def _take_state(self, reply: Mapping[str, Any], *, at_once: bool) -> None:
        """Follow a reply: ``at_once``, or where somebody watches, or else when somebody looks. With the lock held."""
        mirror = self._mirror
        if mirror is not None:
            mirror.take(reply)
            if at_once or self._watched or mirror.remembers:
                mirror.settle()
