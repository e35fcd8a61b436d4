"""Names: what ROS allows, and what ROS calls its topics and types in DDS."""

import re
from collections.abc import Iterable

_ILLEGAL = re.compile(r"[^A-Za-z0-9_]+")
_REPEATED = re.compile(r"__+")
_TOPIC = re.compile(r"(/[A-Za-z_][A-Za-z0-9_]*)+")
_TYPE = re.compile(r"([a-z][a-z0-9_]*)/(msg|srv)/([A-Z][A-Za-z0-9_]*)")
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
    """A token for every text, no two the same: later ones get ``_2``, ``_3`` ...

    Texts that are legal as they stand come first, so that no other takes their name.
    """
    wanted = list(dict.fromkeys(texts))
    names = UniqueNames()
    by_legality = sorted(wanted, key=lambda text: legal_token(text) != text)
    tokens = {text: names.claim(legal_token(text)) for text in by_legality}
    return {text: tokens[text] for text in wanted}


class UniqueNames:
    """Hands out names that differ: one that is taken gets ``_2``, ``_3`` and so on."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = set(reserved)

    def claim(self, wanted: str) -> str:
        """That name, or the first free one like it."""
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        return name


def topic_to_dds(topic: str) -> str:
    """``/panda/joint_states`` -> ``rt/panda/joint_states``."""
    return "rt" + checked(topic)


def request_to_dds(service: str) -> str:
    """``/reset`` -> ``rq/resetRequest``."""
    return f"rq{checked(service)}Request"


def reply_to_dds(service: str) -> str:
    """``/reset`` -> ``rr/resetReply``."""
    return f"rr{checked(service)}Reply"


def type_to_dds(type_name: str) -> str:
    """``sensor_msgs/msg/JointState`` -> ``sensor_msgs::msg::dds_::JointState_``."""
    match = _TYPE.fullmatch(type_name)
    if match is None:
        raise ValueError(f"{type_name!r} is not the name of a ROS type, such as 'std_msgs/msg/String'")
    package, kind, name = match.groups()
    return f"{package}::{kind}::dds_::{name}_"


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
