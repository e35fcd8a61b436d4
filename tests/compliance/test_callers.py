"""Callers with keys: what each role may do, whose session is whose, and who has the driver's seat."""

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.compliance.conftest import Wire
from urlab.access import AuditLog, Role, RpcCaller
from urlab.ops import session as session_module
from urlab_wire import CATALOGUE

Call = Callable[..., Wire]


@pytest.fixture
def call(server: Any) -> Iterator[Call]:
    """A wire client of a caller with that name and role; the server's own user drives afterwards."""

    def connect(name: str, role: Role) -> Wire:
        caller = RpcCaller(name, role, "192.0.2.1")
        return Wire(lambda frame: server.dispatcher.serve(server.dispatcher.read(frame), caller))

    yield connect
    Wire(server.dispatcher.handle).hello(takeover=True)


@pytest.fixture
def audit(server: Any, tmp_path: Path) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """What the audit log says so far."""
    path = tmp_path / "audit.jsonl"
    server._parts.audit = AuditLog(path)
    yield lambda: [json.loads(line) for line in path.read_text().splitlines()]
    server._parts.audit = None


HELLOS = {"observer": {"observer": True}, "operator": {"operator": True}, "driver": {"takeover": True}}


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("kind", HELLOS)
def test_a_role_opens_its_own_kind_of_session_and_those_below(call: Call, role: Role, kind: str) -> None:
    reply = call("ada", role).ask("hello", **HELLOS[kind])
    if role.covers(Role(kind)):
        assert reply["op"] == "hello_ok"
    else:
        assert reply["code"] == "not_allowed"
        assert all(word in reply["message"] for word in ("'ada'", f"the role {kind}", role))


def test_an_observer_may_read_and_nothing_else(call: Call) -> None:
    ada = call("ada", Role.OBSERVER)
    ada.hello(observer=True)
    for name, spec in CATALOGUE.items():
        if name != "hello":
            code = ada.ask(name).get("code")
            assert code != "not_allowed" if spec.reads else code in ("missing_field", "observer_read_only")


READS = {
    "step", "read_mocap_pose", "get_contacts", "list_keyframes", "list_states", "recording_status", "list_recordings",
    "export_status", "replay_list_sessions", "list_levels", "current_level", "actor_hierarchy", "snapshot",
    "pie_status", "recent_log", "list_actors", "list_blueprints", "blueprint_picture", "find_actors",
    "get_actor_bounds", "get_camera", "read_view", "viewport_screenshot",
}  # fmt: skip
"""What an observer may call; a step only reads, in an observer's session. All other ops need an operator, or more."""

OF_ADMINS = {"destroy_asset", "editor_address"}
PRE_SESSION = {"hello", "meta"}
KINDS = {Role.OBSERVER: "observer", Role.OPERATOR: "operator", Role.DRIVER: "driver", Role.ADMIN: "driver"}


@pytest.mark.parametrize("role", Role)
def test_every_op_is_open_to_the_roles_that_the_table_says(call: Call, sample: Any, role: Role) -> None:
    """A request with one wrong field, so that nothing is done: bad_value says that the role was not the reason."""
    ada = call("ada", role)
    ada.hello(**HELLOS[KINDS[role]])
    replies = {op: ada.ask(op, **{**sample(op), "request_id": [1]}) for op in CATALOGUE.keys() - PRE_SESSION}
    allowed = {op for op, reply in replies.items() if reply["code"] == "bad_value"}
    refused = {op for op, reply in replies.items() if reply["code"] in ("not_allowed", "observer_read_only")}
    assert allowed | refused == set(replies)
    everything = CATALOGUE.keys() - PRE_SESSION
    assert (
        allowed
        == {
            Role.OBSERVER: READS,
            Role.OPERATOR: everything - OF_ADMINS,
            Role.DRIVER: everything - OF_ADMINS,
            Role.ADMIN: everything,
        }[role]
    )


def test_an_operator_changes_the_world_and_deletes_no_files(call: Call) -> None:
    ada = call("ada", Role.OPERATOR)
    ada.hello(operator=True)
    assert ada.ok("set_paused", paused=True)
    reply = ada.ask("destroy_asset", asset_path="/Game/Levels/nothing")
    assert (reply["code"], "the role admin" in reply["message"]) == ("not_allowed", True)
    root = call("root", Role.ADMIN)
    root.hello(operator=True)
    assert root.ok("destroy_asset", asset_path="/Game/Levels/nothing")["was_found"] is False


def test_a_role_that_was_taken_back_ends_what_its_sessions_may_do(call: Call) -> None:
    ada = call("ada", Role.DRIVER)
    ada.hello(takeover=True)
    assert ada.ok("pie_status")
    less = call("ada", Role.OBSERVER)
    less.session_id = ada.session_id
    assert less.refused("step") == "not_allowed"


@pytest.mark.parametrize("kind", HELLOS)
def test_a_session_id_is_worth_nothing_to_another_caller(call: Call, kind: str) -> None:
    ada, eve = call("ada", Role.ADMIN), call("eve", Role.ADMIN)
    ada.hello(**HELLOS[kind])
    eve.session_id = ada.session_id
    assert eve.refused("pie_status") == "session_expired"
    assert ada.ok("pie_status")


def test_the_server_s_own_user_may_use_any_session(call: Call, server: Any) -> None:
    ada, own = call("ada", Role.DRIVER), Wire(server.dispatcher.handle)
    ada.hello(takeover=True)
    own.session_id = ada.session_id
    assert own.ok("pie_status")


def test_a_driver_that_is_active_is_not_replaced_by_another_caller_unless_it_says_takeover(
    call: Call, audit: Any, caplog: pytest.LogCaptureFixture
) -> None:
    ada, eve = call("ada", Role.DRIVER), call("eve", Role.DRIVER)
    ada.hello(takeover=True)
    reply = eve.ask("hello")
    assert reply["code"] == "driver_busy"
    assert all(word in reply["message"] for word in ("'ada' drives", "takeover"))
    assert ada.ok("pie_status")
    eve.hello(takeover=True)
    lost = ada.ask("step")
    assert (lost["code"], "'eve' has taken the driver's seat" in lost["message"]) == ("session_expired", True)
    assert "'eve' takes the driver's seat from 'ada'" in caplog.text
    events = [(one["event"], one["caller"], one.get("taken_from")) for one in audit()]
    assert events[-2:] == [("takeover", "eve", "ada"), ("hello", "eve", None)]
    assert audit()[-1]["address"] == "192.0.2.1"


def test_a_driver_that_has_been_silent_gives_its_seat_away(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    call("ada", Role.DRIVER).hello(takeover=True)
    monkeypatch.setattr(session_module, "LEASE_S", 0.05)
    time.sleep(0.06)  # the lease is a time
    call("eve", Role.DRIVER).hello()


def test_a_caller_replaces_its_own_session_as_ever(call: Call) -> None:
    first, second = call("ada", Role.DRIVER), call("ada", Role.DRIVER)
    first.hello(takeover=True)
    second.hello()
    assert first.refused("pie_status") == "session_expired"


def test_an_upload_that_makes_older_ones_go_is_in_the_audit_log_with_them(
    call: Call, audit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("urlab.importing.uploads.upload_store.MOST_UPLOADS", 1)
    ada = call("ada", Role.OPERATOR)
    ada.hello(operator=True)
    first = Path(ada.ok("upload_asset", name="first.xml", data=b"<mujoco/>")["path"])
    ada.ok("upload_asset", name="second.xml", data=b"<mujoco/>")
    gone, written = audit()[-2:]
    assert (gone["event"], gone["caller"], gone["path"]) == ("deleted", "ada", str(first.parent))
    assert (written["event"], Path(written["path"]).name) == ("wrote", "second.xml")


def test_what_is_written_and_deleted_is_in_the_audit_log(call: Call, audit: Any) -> None:
    root = call("root", Role.ADMIN)
    root.hello(operator=True)
    root.ok("create_level", name="audited")
    root.ok("save_level")
    sent = root.ok("upload_asset", name="audited.xml", data=b"<mujoco/>")
    root.ok("destroy_asset", asset_path="/Game/Levels/audited")
    lines = [one for one in audit() if one["event"] != "hello"]
    assert [(one["event"], one["op"]) for one in lines] == [
        ("wrote", "create_level"), ("wrote", "save_level"), ("wrote", "upload_asset"), ("deleted", "destroy_asset"),
    ]  # fmt: skip
    assert all(one["caller"] == "root" and one["time"].endswith("+00:00") for one in lines)
    assert lines[-1]["asset_path"] == "/Game/Levels/audited"
    assert lines[-2]["path"] == sent["path"]


FILES = {
    "recording_save", "recording_export", "create_level", "save_level", "import_xml", "upload_asset", "destroy_asset",
}  # fmt: skip
"""Ops that write or delete files of the project, whatever they are asked; each has a line of the audit log."""


def _files(project: Path) -> dict[str, int]:
    """Not of the journal: a thread of its own makes and renames its folders meanwhile."""
    own = ("Saved/URLab/audit", ".lock", "Saved/URLab/Replays/autosave-")
    paths = []
    for folder, inner, names in os.walk(project):
        inner[:] = [one for one in inner if one != "Journal"]
        paths += [Path(folder, name) for name in names]
    told = {path.relative_to(project).as_posix(): path for path in paths}
    return {name: path.stat().st_mtime_ns for name, path in told.items() if not any(one in name for one in own)}


def test_no_other_op_writes_a_file_of_the_project(builder: Any, sample: Any) -> None:
    """Journals and autosaves are the server's own, and are told in its log."""
    builder.spawn("robot", builder.robot_file)
    builder.play()
    before = _files(builder.project)
    for op in CATALOGUE.keys() - FILES - PRE_SESSION:
        builder.wire.ask(op, **sample(op))
        assert _files(builder.project) == before, op


def test_a_spawn_that_imports_a_file_or_heights_is_in_the_audit_log_and_another_is_not(builder: Any) -> None:
    wire = builder.wire
    wire.ok("spawn_actor", blueprint=builder.box_file, actor_id="own")
    wire.ok("spawn_actor", blueprint="box", actor_id="shipped")
    ground = {"heights": [[0, 0], [0, 1]], "size": [1, 1, 1]}
    wire.ok("spawn_actor", blueprint="hill", actor_id="ground", heightfield=ground)
    wire.ok("spawn_grid", blueprint=builder.robot_file, base_actor_id="g", count_x=1, count_y=1)
    wire.ok("spawn_grid", blueprint="box", base_actor_id="h", count_x=1, count_y=1)
    lines = map(json.loads, (builder.project / "Saved/URLab/audit.jsonl").read_text().splitlines())
    told = [(one["event"], one["op"], one["blueprint"]) for one in lines if "spawn" in one.get("op", "")]
    assert told == [
        ("wrote", "spawn_actor", builder.box_file),
        ("wrote", "spawn_actor", "hill"),
        ("wrote", "spawn_grid", builder.robot_file),
    ]
