"""The policy itself: observation out, rows of actions in, as a chunk of the protocol's actions."""

from urlab.evaluation.policies.base import Action, Observation, PolicyError, PolicyNotFound, embodiment_of
from urlab.evaluation.policies.openpi.aloha import Aloha
from urlab.evaluation.policies.openpi.connection import PolicyServer
from urlab.evaluation.policies.openpi.droid import Droid, DroidJoints
from urlab.evaluation.policies.openpi.libero import Libero
from urlab.evaluation.policies.openpi.mapping import Mapping, checked_rows

MAPPINGS: dict[str, type[Mapping]] = {"droid": Droid, "droid_joints": DroidJoints, "libero": Libero, "aloha": Aloha}
BY_EMBODIMENT = {"franka_robotiq": "droid", "franka_panda": "libero", "aloha": "aloha"}


class OpenPiPolicy:
    """A policy at ``url`` (ws://host:port). One connection, so one worker.

    ``rows`` of each answer are carried out before the next question, by default as many as is usual for the family.
    ``keys`` names a family of `MAPPINGS` in place of the robot's own.
    """

    needs_cameras = True
    needs_privileged = False

    def __init__(
        self,
        url: str,
        *,
        rows: int | None = None,
        keys: str | None = None,
        api_key: str | None = None,
        connect_timeout_s: float = 10.0,
        reply_timeout_s: float = 300.0,
    ) -> None:
        if keys is not None and keys not in MAPPINGS:
            raise PolicyNotFound(f"keys={keys!r} is not known; there are: {', '.join(MAPPINGS)}")
        if rows is not None and (not isinstance(rows, int) or rows < 1):
            raise PolicyNotFound(f"rows={rows!r} must be a whole number from 1")
        self._rows, self._keys = rows, keys
        self._server = PolicyServer(
            url, api_key=api_key, connect_timeout_s=connect_timeout_s, reply_timeout_s=reply_timeout_s
        )

    def reset(self, observation: Observation) -> None:
        """Choose the mapping; the protocol has no word for a reset."""
        embodiment = embodiment_of(observation)
        name = self._keys or BY_EMBODIMENT[embodiment.name]
        arms = MAPPINGS[name].arms
        if arms != len(embodiment.arms):
            raise PolicyError(f"keys={name} is for a robot with {arms} arm(s); {embodiment.name} has another number")
        self._mapping = MAPPINGS[name]()

    def act(self, observation: Observation) -> list[Action]:
        """Ask, and translate the first rows of the answer."""
        answer = self._server.infer(self._mapping.encode(observation))
        rows = checked_rows(answer, self._mapping.width)
        return self._mapping.decode(rows[: self._rows or self._mapping.default_rows], observation)

    def close(self) -> None:
        """Hang up."""
        self._server.close()
