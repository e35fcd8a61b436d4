"""The frames of a scene: what they are called, how they hang together, and which of them never move.

Names. ``<robot>`` is a robot's prefix made legal for ROS, the same word as in its topics; everything else is MuJoCo's
short name (without ``<prefix>_``).

| frame | where | parent | in |
|---|---|---|---|
| ``world`` | MuJoCo's world: z up, metres | none | |
| ``<robot>/map``, ``<robot>/odom`` | the world (a free robot's) | ``world``, ``<robot>/map`` | tf_static |
| ``<robot>/base_link`` | the root body | ``<robot>/odom`` (free) or ``world`` | tf or tf_static |
| ``<robot>/<body>`` | the body | that of its parent body | tf (jointed) or tf_static |
| ``<robot>/<site>`` | a site with a sensor | its body | tf_static |
| ``<robot>/<site>_range_frame`` | a rangefinder: +x along the beam | its body | tf_static |
| ``<robot>/<camera>_optical_frame`` | +x right, +y down, +z ahead | its body | tf_static |
| ``<entity>`` | a body outside the robots | ``world``, or the entity that carries it | tf (free, mocap) or tf_static |
| ``<camera>_optical_frame`` | a camera that no robot owns | its body | tf_static |

A robot whose root has joints to the world has ``<robot>/mount`` below ``world``; `urlab.ros2.convert.links` says more
of links. A name that is taken gets ``_2``. A camera that follows something is not fixed to its body: its frame hangs
on ``world`` and is told with each picture (`urlab.ros2.convert.camera_transform`).

Odometry is exact, so map, odom and world are one place (REP-105). Whoever localises a robot publishes map -> odom
himself: ``SceneFrames(client, map_to_odom=False)`` leaves that edge out.

Links of a robot's URDF are called as here without ``<robot>/``: RViz wants ``<robot>`` as "TF Prefix", and
robot_state_publisher ``<robot>/`` as "frame_prefix".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import mujoco

from urlab.ros2.convert.camera import OPTICAL
from urlab.ros2.convert.entities import EntityFrame
from urlab.ros2.convert.links import MAP, ODOM, WORLD, Link, LinkTree, Names, body_pose
from urlab.ros2.convert.pose import Pose, at
from urlab.ros2.names import legal_token, legal_tokens
from urlab_client import URLabArticulation, URLabClient

__all__ = ["OPTICAL", "WORLD", "RobotFrames", "SceneFrames", "StaticFrame"]

_OBJ = mujoco.mjtObj
_SITE = int(_OBJ.mjOBJ_SITE)
_RANGEFINDER = int(mujoco.mjtSensor.mjSENS_RANGEFINDER)
_FIXED_CAMERA = int(mujoco.mjtCamLight.mjCAMLIGHT_FIXED)

_BEAM = at(quat_wxyz=(1.0, 0.0, -1.0, 0.0))
"""A rangefinder looks along the site's +z; a quarter turn about -y takes +x there."""


@dataclass(frozen=True, eq=False)
class StaticFrame:
    """A frame that never moves in its parent."""

    parent: str
    child: str
    pose: Pose


class RobotFrames:
    """The frames of one robot. ``namespace`` is its legal name; ``links`` and ``root`` are those of `LinkTree`.

    Links have names without the namespace, everything else here is a frame id: ``base`` of the root body, ``odom`` of
    the frame that a free robot's base moves in (None for any other), ``bodies`` of each body by id, ``sites`` and
    ``beams`` of the sites that have sensors, or rangefinders, ``cameras`` of each optical frame by the camera's short
    name. ``static`` and ``following`` are as in `SceneFrames`.
    """

    def __init__(self, model: Any, robot: URLabArticulation, namespace: str, *, map_to_odom: bool = True) -> None:
        self.namespace = namespace
        self._tree = LinkTree(model, robot)
        self._model, self._prefix = model, robot.prefix
        self.links: list[Link] = self._tree.links
        self.root = self._tree.root
        self.base = self.frame(self._tree.base)
        self.odom = self.frame(ODOM) if self._tree.is_free else None
        self.bodies = {0: WORLD} | {body: self.frame(link) for body, link in self._tree.of_body.items()}
        self.static = [*self._localised(map_to_odom), *self._fixed_links()]
        self.sites: dict[int, str] = {}
        self.beams: dict[int, str] = {}
        self._add_sites(robot)
        self.cameras, self.following = self._add_cameras(robot)

    def frame(self, name: str) -> str:
        """The frame id of a link's name."""
        return f"{self.namespace}/{name}"

    def ends(self, link: Link) -> tuple[str, str]:
        """The frame ids of a link's parent and of the link."""
        if link.parent is not None:
            return self.frame(link.parent), self.frame(link.name)
        odom = self.odom if link.name == self.root else None
        return odom or WORLD, self.frame(link.name)

    def _localised(self, map_to_odom: bool) -> list[StaticFrame]:
        if self.odom is None:
            return []
        world_to_map = StaticFrame(WORLD, self.frame(MAP), at())
        return [world_to_map, StaticFrame(self.frame(MAP), self.odom, at())] if map_to_odom else [world_to_map]

    def _fixed_links(self) -> list[StaticFrame]:
        return [StaticFrame(*self.ends(link), link.origin) for link in self.links if link.joint is None]

    def _add_sites(self, robot: URLabArticulation) -> None:
        for sensor in robot.sensors.values():
            if int(self._model.sensor_objtype[sensor.id]) != _SITE:
                continue
            site = int(self._model.sensor_objid[sensor.id])
            if sensor.sensor_type == _RANGEFINDER:
                self._add_site(self.beams, site, "_range_frame", _BEAM)
            else:
                self._add_site(self.sites, site, "", at())

    def _add_site(self, table: dict[int, str], site: int, suffix: str, turn: Pose) -> None:
        if site in table:
            return
        short = str(mujoco.mj_id2name(self._model, _OBJ.mjOBJ_SITE, site)).removeprefix(f"{self._prefix}_")
        table[site] = self.frame(self._tree.names.claim(f"{short}{suffix}"))
        pose = at(self._model.site_pos[site], self._model.site_quat[site]).then(turn)
        self.static.append(StaticFrame(self.bodies[int(self._model.site_bodyid[site])], table[site], pose))

    def _add_cameras(self, robot: URLabArticulation) -> tuple[dict[str, str], set[str]]:
        optical, following = {}, set()
        for short in robot.cameras:
            optical[short] = self.frame(self._tree.names.claim(f"{short}_optical_frame"))
            edge = optical_edge(self._model, f"{self._prefix}_{short}", optical[short], self.bodies)
            if edge is None:
                following.add(optical[short])
            else:
                self.static.append(edge)
        return optical, following


class SceneFrames:
    """All frames of the scene that a client shows. Made from a handshake, and good for as long as that is.

    ``robots`` is keyed by prefix, ``entities`` by name, ``cameras`` (optical frames) by full name. ``static`` are the
    frames that never move in their parents; ``following`` the optical frames whose place only a picture tells. Without
    ``map_to_odom`` that edge is left to whoever localises the robots. Never changes; any thread.
    """

    def __init__(self, client: URLabClient, *, map_to_odom: bool = True) -> None:
        model = client.model
        if model is None:
            raise ValueError("frames come from the client's model: discover() a playing server, with local_model=True")
        spaces = legal_tokens(client.articulations)
        self.robots = {
            prefix: RobotFrames(model, robot, spaces[prefix], map_to_odom=map_to_odom)
            for prefix, robot in client.articulations.items()
        }
        self._bodies = {body: frame for one in self.robots.values() for body, frame in one.bodies.items()} | {0: WORLD}
        self.entities = self._entity_frames(model, client)
        self.static = [edge for robot in self.robots.values() for edge in robot.static] + self._fixed_entities()
        self.cameras = {
            f"{prefix}/{short}": frame for prefix, one in self.robots.items() for short, frame in one.cameras.items()
        }
        self.following = {frame for robot in self.robots.values() for frame in robot.following}
        self._add_cameras(model, client.global_cameras)

    def _entity_frames(self, model: Any, client: URLabClient) -> dict[str, EntityFrame]:
        bodies = {one.body_id: name for name, one in client.entities.items() if name not in client.articulations}
        words = legal_tokens((WORLD, *bodies.values()))
        made = {name: self._entity(model, body, bodies, words[name]) for body, name in bodies.items()}
        self._bodies |= {body: made[name].frame_id for body, name in bodies.items()}
        return made

    def _entity(self, model: Any, body: int, names: Mapping[int, str], word: str) -> EntityFrame:
        carrier_id, place = _carrier(model, body)
        carrier = names.get(carrier_id, names[body]) if carrier_id else None
        return EntityFrame(names[body], word, self._bodies.get(body, word), carrier, place, body in self._bodies)

    def _fixed_entities(self) -> list[StaticFrame]:
        return [
            StaticFrame(self.entities[one.carrier].frame_id if one.carrier else WORLD, one.frame_id, one.place)
            for one in self.entities.values()
            if not one.moves
        ]

    def _add_cameras(self, model: Any, names: Iterable[str]) -> None:
        handed = Names(one.frame_id for one in self.entities.values())
        for name in names:
            self.cameras[name] = frame = handed.claim(f"{legal_token(name)}_optical_frame")
            edge = optical_edge(model, name, frame, self._bodies)
            if edge is None:
                self.following.add(frame)
            else:
                self.static.append(edge)


def optical_edge(model: Any, camera: str, frame: str, bodies: Mapping[int, str]) -> StaticFrame | None:
    """Where the optical frame of a camera (compiled name) is in that of its body; None when it is not fixed to it."""
    index = mujoco.mj_name2id(model, _OBJ.mjOBJ_CAMERA, camera)
    if index < 0 or int(model.cam_mode[index]) != _FIXED_CAMERA or int(model.cam_bodyid[index]) not in bodies:
        return None
    pose = at(model.cam_pos[index], model.cam_quat[index]).then(OPTICAL)
    return StaticFrame(bodies[int(model.cam_bodyid[index])], frame, pose)


def _carrier(model: Any, body: int) -> tuple[int, Pose]:
    """The first body at or above this one that can move (0: none), and the pose of this one in it."""
    place = at()
    while body and not int(model.body_jntnum[body]) and int(model.body_mocapid[body]) < 0:
        place = body_pose(model, body).then(place)
        body = int(model.body_parentid[body])
    return body, place
