"""Names: what ROS allows, and what ROS calls its topics and types in DDS."""

import re
from collections.abc import Iterable

_ILLEGAL = re.compile(r"[^A-Za-z0-9_]+")
_REPEATED = re.compile(r"__+")
_TOPIC = re.compile(r"(/[A-Za-z_][A-Za-z0-9_]*)+")
_TYPE = re.compile(r"([a-z][a-z0-9_]*)/(msg|srv)/([A-Z][A-Za-z0-9_]*)")
_DDS_TYPE = re.compile(r"([a-z][a-z0-9_]*)::(msg|srv)::dds_::([A-Z][A-Za-z0-9_]*)_")
_LONGEST_TOPIC = 247
_LONGEST_TOKEN = 90
"""Two of them, and what the bridge puts before and after them, fit into a topic."""


def legal_token(text: str) -> str:
    """One token of a ROS name, as close to the text as the rules allow.

    Letters, digits and single underscores, 90 at most; it begins with a letter (a leading underscore would hide the
    name) and does not end with an underscore. Different texts may give the same token: see `legal_tokens`.
    """
    token = _REPEATED.sub("_", _ILLEGAL.sub("_", text)).strip("_")
    if not token:
        return "unnamed"
    return (f"n{token}" if token[0].isdigit() else token)[:_LONGEST_TOKEN].rstrip("_")


def legal_tokens(texts: Iterable[str]) -> dict[str, str]:
    """A token for every text, no two the same: whoever comes later gets ``_2``, ``_3`` ...

    Texts that are legal as they stand come first, so that nobody takes their name.
    """
    wanted = list(dict.fromkeys(texts))
    tokens: dict[str, str] = {}
    taken: set[str] = set()
    for text in sorted(wanted, key=lambda text: legal_token(text) != text):
        tokens[text] = _free(legal_token(text), taken)
        taken.add(tokens[text])
    return {text: tokens[text] for text in wanted}


def topic_to_dds(topic: str) -> str:
    """``/panda/joint_states`` -> ``rt/panda/joint_states``."""
    return "rt" + checked(topic)


def request_to_dds(service: str) -> str:
    """``/reset`` -> ``rq/resetRequest``."""
    return f"rq{checked(service)}Request"


def reply_to_dds(service: str) -> str:
    """``/reset`` -> ``rr/resetReply``."""
    return f"rr{checked(service)}Reply"


def topic_from_dds(dds_topic: str) -> str | None:
    """The ROS topic of that name in DDS; None if it is not a ROS topic."""
    return dds_topic[2:] if dds_topic.startswith("rt/") else None


def type_to_dds(type_name: str) -> str:
    """``sensor_msgs/msg/JointState`` -> ``sensor_msgs::msg::dds_::JointState_``."""
    match = _TYPE.fullmatch(type_name)
    if match is None:
        raise ValueError(f"{type_name!r} is not the name of a ROS type, such as 'std_msgs/msg/String'")
    package, kind, name = match.groups()
    return f"{package}::{kind}::dds_::{name}_"


def type_from_dds(dds_type: str) -> str | None:
    """The ROS type of that name in DDS; None if it is not a ROS type."""
    match = _DDS_TYPE.fullmatch(dds_type)
    return "/".join(match.groups()) if match else None


def checked(name: str) -> str:
    """That name of a topic or service, if ROS allows it; ValueError with the reason if not."""
    if not _TOPIC.fullmatch(name) or _REPEATED.search(name):
        raise ValueError(
            f"{name!r} is not a ROS name: it must be absolute, and every token is letters, digits and single"
            " underscores and begins with no digit, as in '/panda/joint_states'"
        )
    if len(name) > _LONGEST_TOPIC:
        raise ValueError(f"{name!r} has {len(name)} characters; a ROS name may have {_LONGEST_TOPIC}")
    return name


def _free(token: str, taken: set[str]) -> str:
    if token not in taken:
        return token
    number = 2
    while f"{token}_{number}" in taken:
        number += 1
    return f"{token}_{number}"
