"""Where an actor has to stand for its topmost body to be where somebody wants it."""

from urlab.ros2.convert.pose import Pose, at
from urlab.ros2.services.operating import OperatorClient
from urlab.ros2.services.things import Thing

_CLOSE = 1e-9


def authored_pose(client: OperatorClient, name: str) -> Pose:
    """Where the level puts an actor: the frame in which its model file is written, in the world."""
    row = next(one for one in client.outliner.list_actors() if one.name == name)
    x, y, z, w = row.rotation_quat
    return at(row.location, (w, x, y, z))


def needed_pose(client: OperatorClient, thing: Thing, wanted: Pose) -> Pose | None:
    """The pose of the actor that puts its body, when a play begins, at ``wanted``; None when that is so already.

    The level's pose of the actor must be the one with which the scene that plays was compiled.
    """
    assert thing.handle is not None
    body = client.model.body(thing.handle.body_id)
    start = at(body.pos, body.quat)
    off = start.inverse().then(wanted)
    if abs(off.pos).max() < _CLOSE and abs(off.quat_wxyz[1:]).max() < _CLOSE:
        return None
    in_actor = authored_pose(client, thing.actor.name).inverse().then(start)
    return wanted.then(in_actor.inverse())


def move_actor(client: OperatorClient, name: str, pose: Pose) -> None:
    """Change where the level puts an actor."""
    w, x, y, z = (float(one) for one in pose.quat_wxyz)
    client.scene.set_actor_transform(name, by_name=True, location=pose.pos.tolist(), rotation_quat=(x, y, z, w))
