"""Every op with every documented field, default, reply field and error: one row each, and none is skipped.

The rows are in ``documented_protocol.toml``, with the document and line that state them. Here is how they are tried.
"""

import base64
import re
import tomllib
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from urlab.mujoco_versions import has_batches
from urlab_wire import CATALOGUE, ErrorCode

ENVELOPE = {"session_id", "request_id"}
"""Fields that every request has."""

TABLE: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("documented_protocol.toml").read_text())
SERVED = {op: entry for op, entry in TABLE.items() if has_batches() or not op.startswith("batch_")}
"""Those that this version of MuJoCo can do."""

NAMESPACES = {
    "scene": "000:394",
    "sim": "000:395",
    "outliner": "000:396",
    "debug": "000:397",
    "viewport": "000:398",
}
"""Namespaces of the ops that need no play, and the line that lists the ops of each."""

CODES = {
    "bad_request": "000:411", "missing_op": "000:412", "unknown_op": "000:413", "not_in_editor": "000:414",
    "no_active_manager": "000:415", "session_expired": "000:416", "missing_field": "000:417", "not_ready": "000:418",
    "bad_mode": "000:419", "bad_value": "000:420", "unknown_articulation": "000:421", "unknown_body": "000:422",
    "not_mocap_body": "000:423", "unknown_keyframe": "000:424", "dim_mismatch": "000:425", "no_joints": "000:426",
    "no_twist_controller": "000:427", "no_controller": "000:428", "controller_schema_violation": "000:429",
    "mode_locked_by_server": "000:430", "recording_already_active": "000:431", "recording_not_active": "000:432",
    "path_not_writable": "000:433", "path_not_readable": "000:434", "replay_session_not_found": "000:435",
    "replay_requires_stepped": "000:436", "step_timeout": "000:437", "shutting_down": "000:438",
}  # fmt: skip

ELSEWHERE = {
    "bad_request": "test_encodings", "missing_op": "test_check_order", "unknown_op": "test_check_order",
    "no_active_manager": "test_play", "step_timeout": "test_step_limits", "shutting_down": "test_zmq_clients",
}  # fmt: skip
"""Codes that no single request gets, and the module of this folder that brings each about."""

CANNOT_HAPPEN = {
    "not_in_editor": "there is no build without an editor",
    "not_ready": "a play is either ready or not there, and a recorder is always there",
}
"""Codes of states that this server does not have. They are known words all the same."""

TYPES: dict[str, Callable[[Any], bool]] = {
    "str": lambda value: isinstance(value, str),
    "str?": lambda value: value is None or isinstance(value, str),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "float": lambda value: isinstance(value, float),
    "bool": lambda value: isinstance(value, bool),
    "bytes": lambda value: isinstance(value, bytes) and len(value) > 0,
    "list": lambda value: isinstance(value, list),
    "dict": lambda value: isinstance(value, dict),
    "floats": lambda value: isinstance(value, list) and all(isinstance(one, float) for one in value),
    "base64": lambda value: len(base64.b64decode(value, validate=True)) > 0,
    "bgra8": lambda value: value == "bgra8",
    "uuid": lambda value: str(uuid.UUID(value)) == value,
    "version": lambda value: re.fullmatch(r"urlab/\d+\.\d+\.\d+\S*", value) is not None,
    "absolute path": lambda value: Path(value).is_absolute() and Path(value).exists(),
}

MOMENTARY = {"wall_time", "export_id", "session_id", "actor_path", "sim_time_s"}
"""Reply fields that are never twice the same."""


class Documented:
    """Sends rows of the table, on a fresh play each."""

    def __init__(self, wire: Any, files: dict[str, str]) -> None:
        self.wire = wire
        self.files = files

    def reply(self, op: str, fields: dict[str, Any], *, before: Any = None, mode: str | None = None) -> Any:
        """The reply to the sample of an op with these fields on top, after the requests that come before it."""
        row = TABLE[op]
        self.wire.play("arena")
        request = self.filled(row.get("sample", {}) | fields)
        for one in row.get("before", []) if before is None else before:
            first = self.wire.ask(**self.filled(one))
            assert first["op"] != "error", first
        if mode is not None:
            self.wire.ok("set_mode", mode=mode)
        if op == "hello":
            reply = self.wire.hello(**fields)
            self.wire.ask("set_mode", mode="direct")  # a play of this session begins in it; an observer has none
            return reply
        return self.wire.ask(op, **request)

    def filled(self, fields: dict[str, Any]) -> dict[str, Any]:
        """With what the table has words for: files of this test, and vectors of the model's sizes."""
        return {name: self._filled(value) for name, value in fields.items()}

    def _filled(self, value: Any) -> Any:
        if isinstance(value, str) and value.endswith(" file"):
            return self.files[value]
        if value == "left out":
            return None
        if value == "some bytes":
            return b"<mujoco/>"
        if value == "a state":
            return self.wire.ok("save_state")["state"]
        if value == "setpoints":
            opened = self.wire.ok("batch_open", num=2)
            self.wire.ok("batch_close", batch_id=opened["batch_id"])
            return bytes(8 * opened["num"] * opened["setpoints"])
        if value == "an export":
            for op in ("recording_start", "step", "recording_stop"):
                self.wire.ok(op)
            name = self.wire.ok("recording_save", path="ep_1234.json")["absolute_path"]
            return self.wire.ok("recording_export", path=name, format="mp4", width=32, height=32)["export_id"]
        if isinstance(value, str) and value.endswith(" zeros"):
            plain = self.wire.model()
            return [0.0] * getattr(plain, value.split()[0])
        return value


@pytest.fixture
def documented(stranger: Any, imported: Path, tmp_path: Path, plain: Any) -> Documented:
    wire = stranger
    wire.model = lambda: plain(wire.hello()["mjb"]).model
    wire.hello()
    if wire.ask("set_mode", mode="direct")["op"] == "error":
        wire.play("arena")
    broken = tmp_path / "broken.xml"
    broken.write_text("<mujoco><worldbody><body></worldbody></mujoco>")
    files = {"robot file": imported / "hopper.xml", "cube file": imported / "cube.obj", "broken file": broken}
    return Documented(wire, {word: str(path) for word, path in files.items()})


def rows(kind: str) -> list[Any]:
    """Every row of a kind, named op-field-line."""
    return [
        pytest.param(op, field, row, id=f"{op}-{field}-{row.get('line', 'extension')}")
        for op, entry in SERVED.items()
        for field, row in entry.get(kind, {}).items()
    ]


def how(row: dict[str, Any]) -> str:
    """What has to be asked to get a reply field; empty when the sample of the op will do."""
    return str({name: row[name] for name in ("asked", "before", "mode") if name in row} or "")


def error_rows() -> list[Any]:
    return [
        pytest.param(op, row, id=f"{op}-{row['code']}-{row['line']}-{number}")
        for op, entry in SERVED.items()
        for number, row in enumerate(entry.get("errors", []))
    ]


def without_momentary(reply: Any) -> Any:
    if isinstance(reply, dict):
        return {name: without_momentary(value) for name, value in reply.items() if name not in MOMENTARY}
    return [without_momentary(one) for one in reply] if isinstance(reply, list) else reply


def at(reply: Any, path: list[str]) -> list[Any]:
    """All values at a path; ``*`` is every key or index, ``+`` those that have the rest. There must be one."""
    if not path:
        return [reply]
    here, rest = path[0], path[1:]
    if here in "*+":
        values = list(reply.values()) if isinstance(reply, dict) else reply
        values = values if here == "*" else [value for value in values if rest[0] in value]
        assert values, "nothing is there"
        return [found for value in values for found in at(value, rest)]
    return at(reply[int(here)] if isinstance(reply, list) else reply[here], rest)


def test_the_table_has_every_op() -> None:
    assert set(TABLE) == set(CATALOGUE)


@pytest.mark.parametrize("op", TABLE)
def test_the_table_has_every_field_of_a_request(op: str) -> None:
    """A field that no document has is an extension, and has its row as well."""
    known = {one.encode_name for one in msgspec.structs.fields(CATALOGUE[op].request)} - ENVELOPE
    assert known == {field.partition(".")[0] for kind in ("request", "extensions") for field in TABLE[op].get(kind, {})}


@pytest.mark.parametrize("op", TABLE)
def test_every_op_is_in_the_catalogue_where_the_documents_have_it(op: str) -> None:
    line = TABLE[op]["line"]
    if line == "extension":
        return
    documented = next((name for name, listed in NAMESPACES.items() if listed == line), None)
    assert documented in (None, CATALOGUE[op].namespace)
    assert (documented is not None) == (CATALOGUE[op].category == "editor_only")


@pytest.mark.parametrize("op", SERVED)
def test_the_sample_of_every_op_is_served(documented: Documented, op: str) -> None:
    assert documented.reply(op, {})["op"] == TABLE[op].get("reply_op", f"{op}_ok")


FIELDS = [*rows("request"), *rows("extensions")]


@pytest.mark.parametrize(("op", "field", "row"), FIELDS)
def test_every_request_field_is_taken(documented: Documented, op: str, field: str, row: dict[str, Any]) -> None:
    name = row.get("field", field)
    assert name in {one.encode_name for one in msgspec.structs.fields(CATALOGUE[op].request)}
    reply = documented.reply(op, row.get("sample", {}) | {name: row["value"]}, mode=row.get("mode"))
    assert reply["op"] == TABLE[op].get("reply_op", f"{op}_ok"), reply
    if row.get("echo"):
        assert reply[name] | row["value"] == reply[name]


@pytest.mark.parametrize(
    ("op", "field", "row"), [row for row in [*rows("request"), *rows("extensions")] if "default" in row.values[2]]
)
def test_every_default_is_what_its_field_means_when_it_is_left_out(
    documented: Documented, op: str, field: str, row: dict[str, Any]
) -> None:
    stated = documented.reply(op, row.get("sample", {}) | {field: row["default"]})
    left_out = documented.reply(op, row.get("sample", {}))
    assert stated["op"] != "error", stated
    assert without_momentary(stated) == without_momentary(left_out)


REPLIES = [
    pytest.param(op, asked, [field for field in entry["reply"].items() if how(field[1]) == asked], id=f"{op}-{asked}")
    for op, entry in SERVED.items()
    for asked in dict.fromkeys(how(row) for row in entry.get("reply", {}).values())
]


@pytest.mark.parametrize(("op", "asked", "fields"), REPLIES)
def test_every_reply_field_is_there_with_its_type(
    documented: Documented, op: str, asked: str, fields: list[tuple[str, dict[str, Any]]]
) -> None:
    first = fields[0][1]
    reply = documented.reply(op, first.get("asked", {}), before=first.get("before"), mode=first.get("mode"))
    wrong = {}
    for path, row in fields:
        where = f"{row.get('line', 'extension')} {path}"
        try:
            values = at(reply, path.split("."))
        except (KeyError, IndexError, AssertionError) as error:
            wrong[where] = repr(error)
            continue
        unfit = [value for value in values if not TYPES[row["type"]](value)]
        if unfit:
            wrong[where] = unfit
    assert wrong == {}


@pytest.mark.parametrize(("op", "row"), error_rows())
def test_every_error_has_its_code(
    documented: Documented, op: str, row: dict[str, Any], make_server: Any, connect: Any
) -> None:
    if "server" in row:
        documented.wire = connect(make_server(**row["server"]))
        documented.wire.hello()
        reply = documented.wire.ask(op, **row["send"])
    elif "without" in row:
        fields = {name: value for name, value in TABLE[op]["sample"].items() if name != row["without"]}
        reply = documented.wire.ask(op, **fields)
    else:
        reply = documented.reply(op, row.get("send", {}), before=row.get("before"), mode=row.get("mode"))
    assert reply["op"] == "error", reply
    assert reply["code"] == row["code"], reply
    assert reply["message"]


@pytest.mark.parametrize("code", CODES)
def test_every_documented_code_is_known_and_brought_about(code: str) -> None:
    assert code in set(ErrorCode)
    tried = {row["code"] for entry in TABLE.values() for row in entry.get("errors", [])}
    elsewhere = ELSEWHERE.get(code)
    if elsewhere is not None:
        assert f'"{code}"' in Path(__file__).with_name(f"{elsewhere}.py").read_text()
    assert (code in tried) + (elsewhere is not None) + (code in CANNOT_HAPPEN) == 1
