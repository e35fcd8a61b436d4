"""The types of ``simulation_interfaces``, the package of ROS by which simulators are controlled, and its result codes.

rosbags does not have them. Versions of the package differ in a few places. 1.x is what Humble, Jazzy and Kilted have,
2.x what comes after them:

- 2.0 names a resource by one message, 1.x by two strings (``has_resource``). In a request that is the same bytes.
- 2.1 says of an entity's new state which part of it counts (``has_flags``); before that all of it does.

Where the package itself is installed here, it decides; else the distribution that ``ROS_DISTRO`` names does.
"""

import importlib
import os
from enum import IntEnum
from typing import Any, Final, NamedTuple

from urlab.ros2 import messages
from urlab.ros2.messages import DEFAULT_DISTRO, make

PACKAGE: Final = "simulation_interfaces"
_FIRST_GENERATION: Final = ("humble", "iron", "jazzy", "kilted")
_DIFFERING: Final = ("SpawnEntity", "SetEntityState")
"""The services by which versions are told apart."""

_RESULT = f"{PACKAGE}/msg/Result"


class InterfaceGeneration(NamedTuple):
    """What tells the versions of the package apart."""

    has_resource: bool
    has_flags: bool


def find_generation() -> InterfaceGeneration:
    """That of the package that is installed, or else of the distribution."""
    try:
        services: Any = importlib.import_module(f"{PACKAGE}.srv")
        spawn, place = (set(services.__dict__[name].Request.get_fields_and_field_types()) for name in _DIFFERING)
    except (ImportError, KeyError, AttributeError):
        is_later = (os.environ.get("ROS_DISTRO") or DEFAULT_DISTRO) not in _FIRST_GENERATION
        return InterfaceGeneration(is_later, is_later)
    return InterfaceGeneration("entity_resource" in spawn, "set_pose" in place)


def definitions(generation: InterfaceGeneration) -> dict[str, str]:
    """Type -> its definition, in an order in which they can be learnt."""
    resource = "Resource entity_resource" if generation.has_resource else "string uri\nstring resource_string"
    spawnable = "Resource entity_resource" if generation.has_resource else "string uri"
    flags = "bool set_pose\nbool set_twist\nbool set_acceleration\n" if generation.has_flags else ""
    texts = {
        "msg/Result": "uint8 result\nstring error_message",
        "msg/Resource": "string uri\nstring resource_string",
        "msg/Bounds": "uint8 type\ngeometry_msgs/Vector3[] points",
        "msg/TagsFilter": "string[] tags\nuint8 filter_mode",
        "msg/EntityCategory": "uint8 category",
        "msg/EntityFilters": "string filter\nEntityCategory[] categories\nTagsFilter tags\nBounds bounds",
        "msg/EntityInfo": "EntityCategory category\nstring description\nstring[] tags",
        "msg/EntityState": "std_msgs/Header header\ngeometry_msgs/Pose pose\ngeometry_msgs/Twist twist\n"
        "geometry_msgs/Accel acceleration",
        "msg/SimulationState": "uint8 state",
        "msg/SimulatorFeatures": "uint16[] features\nstring[] spawn_formats\nstring custom_info",
        "msg/Spawnable": f"{spawnable}\nstring description\nBounds spawn_bounds",
        "srv/GetSimulatorFeatures": "---\nSimulatorFeatures features",
        "srv/GetSimulationState": "---\nSimulationState state\nResult result",
        "srv/SetSimulationState": "SimulationState state\n---\nResult result",
        "srv/StepSimulation": "uint64 steps\n---\nResult result",
        "srv/ResetSimulation": "uint8 scope\n---\nResult result",
        "srv/GetEntities": "EntityFilters filters\n---\nResult result\nstring[] entities",
        "srv/GetEntitiesStates": "EntityFilters filters\n---\nResult result\nstring[] entities\nEntityState[] states",
        "srv/GetEntityState": "string entity\n---\nResult result\nEntityState state",
        "srv/SetEntityState": f"string entity\nEntityState state\n{flags}---\nResult result",
        "srv/GetEntityInfo": "string entity\n---\nResult result\nEntityInfo info",
        "srv/GetEntityBounds": "string entity\n---\nResult result\nBounds bounds",
        "srv/GetSpawnables": "string[] sources\n---\nResult result\nSpawnable[] spawnables",
        "srv/SpawnEntity": f"string name\nbool allow_renaming\n{resource}\nstring entity_namespace\n"
        "geometry_msgs/PoseStamped initial_pose\n---\nResult result\nstring entity_name",
        "srv/DeleteEntity": "string entity\n---\nResult result",
    }
    return {f"{PACKAGE}/{name}": text for name, text in texts.items()}


GENERATION: Final = find_generation()
"""That of the types as they are registered."""


for _name, _definition in definitions(GENERATION).items():
    messages.register(_name, _definition)


# -- results -----------------------------------------------------------------------------------------------------------


class ResultCode(IntEnum):
    """The codes that all services share; those above 100 belong to one service each."""

    FEATURE_UNSUPPORTED = 0
    OK = 1
    NOT_FOUND = 2
    INCORRECT_STATE = 3
    OPERATION_FAILED = 4


class SetStateCode(IntEnum):
    """Those of SetSimulationState."""

    ALREADY_IN_TARGET_STATE = 101
    STATE_TRANSITION_ERROR = 102
    INCORRECT_TRANSITION = 103


class SpawnCode(IntEnum):
    """Those of SpawnEntity."""

    NAME_NOT_UNIQUE = 101
    NAME_INVALID = 102
    UNSUPPORTED_FORMAT = 103
    NO_RESOURCE = 104
    NAMESPACE_INVALID = 105
    RESOURCE_PARSE_ERROR = 106
    INVALID_POSE = 109


INVALID_POSE = 101
"""That of SetEntityState."""


class ServiceRefused(Exception):
    """A request that cannot be done; ``code`` and ``message`` are what the caller gets."""

    def __init__(self, message: str, code: int = ResultCode.OPERATION_FAILED) -> None:
        super().__init__(message)
        self.code = int(code)
        self.message = message


def result(message: str = "", code: int = ResultCode.OK) -> Any:
    """A Result message; of one that is OK the text is a remark."""
    return make(_RESULT, result=int(code), error_message=message)
