"""``client.model`` and ``client.data``: what a client has of the server's, and when it is brought up to date."""

import threading
from collections.abc import Sequence

import mujoco

from urlab_client.handles.articulation import URLabArticulation
from urlab_client.handles.entity import URLabEntity
from urlab_client.lookup import FixedAttributes
from urlab_client.mirror.local_edits import LocalEdits
from urlab_client.mirror.mirror import Mirror
from urlab_wire.codec import Tree
from urlab_wire.ops.stepping import ModelWrites


class LocalData(FixedAttributes):
    """``model`` and ``data``, both None where there is no local model.

    Their types leave the None out: scripts that use them have a local model, and need not ask at every line.

    Late data never shows: reading brings it up to date, and from the first reading of ``data`` on, which the
    caller may keep, every reply is brought into it at once. Handles look without keeping anything.
    """

    def __init__(self) -> None:
        self._model: mujoco.MjModel | None = None
        self._data: mujoco.MjData | None = None
        self._watched = False
        self._mirror: Mirror | None = None
        self._data_lock = threading.RLock()
        self._edits = LocalEdits()

    @property
    def model(self) -> mujoco.MjModel:
        """The local `mujoco.MjModel`, None without one: this client's own copy of what the server compiled.

        In puppet mode it is what is simulated, so edits count. In direct and live mode the server simulates its own
        model: edits here (friction, mass, gains, ...) change only what is evaluated here, never the server, and the
        next step or reset warns of them (`URLabLocalEditWarning`). There, ``runtime.set_model_params`` and
        ``runtime.set_sim_options`` change the server's model, and this one with it.
        """
        self._evaluated_data()  # with the model as it is: the caller may be about to change it
        self._edits.model_read(self._model)
        return self._model

    @property
    def data(self) -> mujoco.MjData:
        """The local `mujoco.MjData`, None without one. The caller may keep it: every later step brings it up to date.

        A handshake (``discover()``, ``sim.start()``) makes a new one. In direct and live mode what is written here
        stays here, and the next step overwrites it.
        """
        if not self._watched:
            with self._data_lock:
                self._evaluated_data()
                self._watched = self._data is not None
        return self._data

    def _evaluated_data(self) -> mujoco.MjData | None:
        """The data, current, for a caller who does not keep it."""
        mirror = self._mirror
        if mirror is not None and not mirror.settled:
            with self._data_lock:
                mirror.settle()
        return self._data

    def _written_data(self) -> mujoco.MjData | None:
        """The data, of which only the state (qpos, qvel, ...) is current, for a caller who does not keep it."""
        mirror = self._mirror
        if mirror is not None and not mirror.written:
            with self._data_lock:
                mirror.write()
        return self._data

    def _renew_data(self, model: mujoco.MjModel | None) -> None:
        """Begin with new data, which no caller has yet. The caller holds the lock."""
        self._mirror = None
        self._model, self._data, self._watched = model, None, False
        self._edits = LocalEdits()
        if model is not None:
            self._data = mujoco.MjData(model)
            mujoco.mj_forward(model, self._data)

    def _take_model(self, changed: ModelWrites) -> None:
        """Follow a change of the server's model, where there is a local one. The caller holds the lock."""
        if self._mirror is not None:
            self._mirror.write_model(changed)
            self._edits.follow(self._model)

    def _mirror_into_data(self, articulations: Sequence[URLabArticulation], entities: Sequence[URLabEntity]) -> None:
        """Let replies about these handles go into the data, where there is one. The caller holds the lock."""
        self._evaluated_data()
        self._mirror = None
        if self._model is not None and self._data is not None:
            self._mirror = Mirror(self._model, self._data, articulations, entities)

    def _take_local_step(self, drags: Sequence[Tree]) -> None:
        """Follow a step that was made here: at once where a caller has the data, else when it is read. Locked."""
        mirror = self._mirror
        if mirror is not None:
            mirror.note_local_step()
            if self._watched:
                mirror.settle()
            mirror.absorb_drags(drags)

    def _take_state(self, reply: Tree, *, at_once: bool) -> None:
        """Follow a reply: ``at_once``, or where a caller has the data, or else when it is read. With the lock held."""
        mirror = self._mirror
        if mirror is not None:
            mirror.take(reply)
            if at_once or self._watched or mirror.remembers:
                mirror.settle()
