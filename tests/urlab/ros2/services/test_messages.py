"""The types of simulation_interfaces are those of the package."""

import os
import subprocess
import sys
from typing import Any

import pytest
from rosbags.interfaces import Nodetype

from urlab.ros2 import messages
from urlab.ros2.services import SERVICES
from urlab.ros2.services.messages import PACKAGE, InterfaceGeneration, definitions

HASHES = {
    "msg/Result": "cf43a306adff3337a0a47143d8f5689933bc70a30478f13b077dc1fe3bc5ad17",
    "msg/Bounds": "e8624fe51f0f5548197542697d924c5699ac7198f1e4c68e50c3ca2af73f5b3f",
    "msg/EntityFilters": "8e7b12e8ea062f14c55de4877221fe1b7cd9749665a7ad8a4ab855fc4b148303",
    "msg/TagsFilter": "5c3efc51e8ed04c266c09cb4691ec95b964cd410558e01d8c83646b038826b45",
    "srv/GetEntities_Request": "f0a4c6c0c39c87f84cbd1ea31956b9f39b3fa538ae9c4aa7fc243a32360e8c70",
    "srv/GetEntities_Response": "dd1916edbdc659d355e77980b16ed6eb4d41d5ff445557931ed65c58b00f7b2c",
    "srv/SpawnEntity_Response": "be8c9fc03b6faaf95570949c80195c8ca75dd99f7efc23262309d497b2923982",
    "srv/GetSpawnables_Request": "3e1d1577446a80da956db3e82363c2d66364f9802f6e9572d89497933207d921",
}
"""As rosidl writes them into the code that it makes from the package."""


@pytest.mark.parametrize("name", HASHES)
def test_type_hashes_are_those_of_ros(name: str) -> None:
    assert messages.type_hash(f"{PACKAGE}/{name}") == f"RIHS01_{HASHES[name]}"


LATER = {
    "msg/Spawnable": "8675aa686f0df1ed7874a6ec210fdce1ac1c07f4e49fc26ec7fb6fe729f6772e",
    "srv/SpawnEntity_Request": "9bc04fe30d4844466c57b7b090fd7e9aa426995f3eb6ff9a726826ab7223e1fd",
}


def test_later_distributions_have_the_later_types() -> None:
    code = (
        "from urlab.ros2 import messages\nfrom urlab.ros2.services import messages as s\n"
        f"hashes = [messages.type_hash(s.PACKAGE + '/' + name) for name in {list(LATER)}]\n"
        "print(s.GENERATION == s.InterfaceGeneration(True, True), *hashes)"
    )
    environment = {**os.environ, "ROS_DISTRO": "rolling"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", *(f"RIHS01_{one}" for one in LATER.values())]


def filled(kind: str) -> Any:
    """A message of that type in which nothing is zero or empty."""
    return messages.make(kind, **{name: value(*field) for name, field in messages.typestore.fielddefs[kind][1]})


def value(kind: Nodetype, detail: Any) -> Any:
    if kind == Nodetype.NAME:
        return filled(detail)
    if kind == Nodetype.BASE:
        return {"string": "word", "bool": True}.get(detail[0], 1.5 if detail[0].startswith("float") else 7)
    return [value(*detail[0]), value(*detail[0])]


def test_every_type_survives_the_wire() -> None:
    for text in definitions(InterfaceGeneration(True, True)), definitions(InterfaceGeneration(False, False)):
        assert len(text) == 11 + len(SERVICES)
    kinds = [name for name in messages.typestore.types if name.startswith(f"{PACKAGE}/")]
    wires = {name: messages.serialise(filled(name), name) for name in kinds}
    again = {name: messages.serialise(messages.deserialise(wire, name), name) for name, wire in wires.items()}
    assert again == wires
    assert all(wires[name] != messages.serialise(messages.make(name), name) for name in kinds)
    assert len(kinds) == 11 + 2 * len(SERVICES)
