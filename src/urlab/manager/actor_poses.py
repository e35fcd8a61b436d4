"""Where the actors of a running scene are."""

from collections.abc import Iterator
from typing import Any

from urlab.compile.assemble import PlacedActor
from urlab.geometry import Pose
from urlab.manager.manager import Manager


def actor_poses(manager: Manager) -> dict[str, Pose]:
    """The pose of every actor that can move as a whole: those whose first body is free or a mocap body."""
    return dict(_moving(manager))


def body_positions(manager: Manager, actor_name: str) -> dict[str, tuple[float, float, float]]:
    """World positions of an actor's bodies, by their compiled names, metres."""
    model, xpos = manager.engine.model, manager.engine.snapshot.xpos
    placed = next(one for one in manager.scene.placed if one.actor.name == actor_name)
    return {name: tuple(xpos[model.body(name).id].tolist()) for name in placed.body_names}


def _moving(manager: Manager) -> Iterator[tuple[str, Pose]]:
    model, snapshot = manager.engine.model, manager.engine.snapshot
    for placed in manager.scene.placed:
        root = _movable_root(model, placed)
        if root is not None:
            now = Pose(tuple(snapshot.xpos[root].tolist()), tuple(snapshot.xquat[root].tolist()))
            yield placed.actor.name, now.apply(_root_in_actor(model, root, placed).inverse())


def _movable_root(model: Any, placed: PlacedActor) -> int | None:
    if not placed.body_names:
        return None
    root = int(model.body(placed.body_names[0]).id)
    is_free = int(model.body_dofnum[root]) == 6 and int(model.body_jntnum[root]) == 1
    return root if is_free or int(model.body_mocapid[root]) >= 0 else None


def _root_in_actor(model: Any, root: int, placed: PlacedActor) -> Pose:
    authored = Pose(tuple(model.body_pos[root].tolist()), tuple(model.body_quat[root].tolist()))
    return placed.actor.pose.inverse().apply(authored)
