"""Every path of every op, with every way out of the allowed folders: nothing outside is read, written or told."""

import ctypes
import os
import shutil
import struct
import tempfile
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
import numpy as np
import pytest

from urlab_wire import CATALOGUE

PROJECT = Path(__file__).parent / "project"

PATHS = {
    "import_xml.path": "secret_robot.xml",
    "spawn_actor.blueprint": "secret_robot.xml",
    "spawn_actor.heightfield.image": "secret_hills.npy",
    "spawn_grid.blueprint": "secret_robot.xml",
    "create_level.name": "secret_lab.toml",
    "save_level.name": "secret_lab.toml",
    "load_level.level_path": "secret_lab.toml",
    "begin_pie.level_path": "secret_lab.toml",
    "destroy_asset.asset_path": "secret_lab.toml",
    "recording_start.name": "secret_ep.json",
    "recording_start.path": "secret_ep.mcap",
    "recording_save.path": "secret_ep.json",
    "replay_load.path": "secret_ep.json",
    "upload_asset.name": "secret_robot.xml",
    "blueprint_picture.blueprint_path": "secret_robot.xml",
    "recording_export.path": "secret_ep.json",
    "recording_export.out": "secret_film.mp4",
    "recording_export.also": "secret_ep.json",
}
"""The fields that name files, or become names of files, each with a file that would be useful there."""

NO_PATHS = {
    "session_id", "request_id", "client_version", "observations", "encoding", "target", "target_by", "actor_id",
    "base_actor_id",
    "new_actor_id", "keyframe", "tags", "kind", "class_filter", "name_prefix", "tag", "label", "text", "anchor",
    "camera", "cameras", "mode", "step_mode", "source", "articulation", "body", "body1", "body2", "geom1", "geom2",
    "include_cameras", "per_articulation", "ctrl_map", "control_mode", "xfrc_applied", "per_articulation_qpos",
    "keyframe_name", "scope", "frames", "names", "config", "params", "options", "save_state.name", "restore_state.name",
    "delete_state.name", "set_equality.name", "replay_set_active.name", "format", "export_id",
    "known_model", "randomize", "field", "until", "set_model_params.changes.name", "task", "batch_id",
    "set_overlay_choice.name", "chosen",
}  # fmt: skip
"""All other fields with text in them, by the last name, or op and name where another op has a path of that name."""


def _is_text(kind: Any) -> bool:
    if get_origin(kind) in (typing.Annotated, Union, UnionType, list):
        return any(_is_text(one) for one in get_args(kind))
    return kind is str or get_origin(kind) is dict


def _text_fields(struct: Any, path: str) -> Iterator[str]:
    for field in msgspec.structs.fields(struct):
        where = f"{path}.{field.encode_name}"
        if _is_text(field.type):
            yield where
        for inner in _structs(field.type):
            yield from _text_fields(inner, where)


def _structs(kind: Any) -> Iterator[Any]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind
    for inner in get_args(kind):
        yield from _structs(inner)


def test_every_text_in_a_request_is_known_to_be_a_path_or_none() -> None:
    fields = [field for name, spec in CATALOGUE.items() for field in _text_fields(spec.request, name)]
    known = [field for field in fields if field in PATHS or {field, field.rpartition(".")[2]} & NO_PATHS]
    assert sorted(set(fields) - set(known)) == [], "is it a path? Say so in PATHS or NO_PATHS"
    assert set(PATHS) <= set(fields)


# -- ways out: an outside folder and a file name in it -> what a request says ------------------------------------------

ESCAPES: dict[str, Callable[[Path, str], str]] = {
    "absolute": lambda out, name: f"{out}/{name}",
    "two slashes": lambda out, name: f"/{out}/{name}",
    "dots": lambda out, name: f"{out.parent}/inside/../outside/{name}",
    "dots at the root": lambda out, name: f"/../..{out}/{name}",
    "relative": lambda out, name: "../" * 20 + f"{out}/{name}"[1:],
    "relative behind a folder": lambda out, name: "a/" + "../" * 20 + f"{out}/{name}"[1:],
    "a link": lambda out, name: f"{out.parent}/inside/link_{name}",
    "a linked folder": lambda out, name: f"{out.parent}/inside/door/{name}",
    "a link in the project": lambda _, name: f"link_{name}".removesuffix(".toml"),
    "a linked folder in the project": lambda _, name: f"door/{name}",
    "a link and dots": lambda out, name: f"{out.parent}/inside/door/../outside/{name}",
    "NUL": lambda out, name: f"{out}/{name}\0.xml",
    "NUL inside": lambda out, name: f"{out.parent}/inside/\0/../../outside/{name}",
    "home": lambda _, name: f"~/{name}",
    "a user's home": lambda _, name: f"~root/{name}",
    "a variable": lambda _, name: f"$HOME/{name}",
    "a URL": lambda out, name: f"file://{out}/{name}",
    "a package": lambda out, name: f"package://..{out}/{name}",
    "backslashes": lambda out, name: f"{out.parent}\\inside\\..\\outside\\{name}",
    "relative backslashes": lambda _, name: f"..\\..\\..\\outside\\{name}",
    "a drive": lambda out, name: f"C:{out}/{name}",
    "very long": lambda out, name: f"{out.parent}/inside/" + "a/../" * 2000 + f"../outside/{name}",
    "rather long": lambda out, name: f"{out.parent}/inside/" + "a/../" * 500 + f"../outside/{name}",
    "the process's root": lambda out, name: f"/proc/self/root{out}/{name}",
    "a thread's root": lambda out, name: f"/proc/thread-self/root{out}/{name}",
    "a slash behind": lambda out, name: f"{out}/{name}/",
    "a dot behind": lambda out, name: f"{out}/{name}/.",
    "spaces around": lambda out, name: f" {out}/{name} ",
    "a line end": lambda out, name: f"{out}/{name}\n",
    "wide dots": lambda out, name: f"{out.parent}/inside/．．/outside/{name}",  # noqa: RUF001 - that is the trick
    "a dot leader": lambda out, name: f"{out.parent}/inside/‥/outside/{name}",
    "wide slashes": lambda out, name: f"{out}/{name}".replace("/", "／"),  # noqa: RUF001 - that is the trick
    "division slashes": lambda out, name: f"{out}/{name}".replace("/", "\u2215"),
    "encoded dots": lambda out, name: f"{out.parent}/inside/%2e%2e/outside/{name}",
    "half a character": lambda out, name: f"{out}/\ud800{name}",
    "shipped": lambda out, name: f"/Game/URLab/{out}/{name}",
    "shipped, with dots": lambda out, name: f"/Game/URLab/../..{out}/{name}",
    "shipped, doubled": lambda out, name: f"/Game/URLab/{out}/{name}.{out}/{name}_C",
    "an import": lambda out, name: f"/Game/MuJoCoImports/{out}/{name}",
    "an import, with dots": lambda out, name: f"/Game/MuJoCoImports/{'../' * 20}{out}/{name}",
    "an import's word": lambda out, name: f"Imports/{'../' * 20}{out}/{name}",
    "a level": lambda out, name: f"/Game/Levels/{out}/{name}".removesuffix(".toml"),
    "a level, with dots": lambda _, name: f"/Game/Levels/../../outside/{name}".removesuffix(".toml"),
    "above the game": lambda out, name: f"/Game/../..{out}/{name}",
    "the game, otherwise": lambda out, name: f"//Game/.//URLab//{out}/{name}",
    "the game in small letters": lambda out, name: f"/game/../{out}/{name}",
    "another package": lambda out, name: f"/Game/Files/{out}/{name}",
    "files": lambda out, name: f"/Files/..{out}/{name}",
}

ROBOT = '<mujoco model="r"><worldbody><body><joint/><geom size=".1"/></body></worldbody></mujoco>'
LEVEL = 'version = 1\nname = "lab"\n'
RECORDING = '{"Frames":[{"timestamp":0,"jointStates":{"arm_shoulder":{"qPos":[0],"qVel":[0]}}}]}'


def _missing(text: str) -> str:
    """The same about a file that is not there, with a name as long."""
    return text.replace("secret", "missed")


class Watch:
    """Tells whether any process opens, reads, changes or creates something in a folder (Linux: inotify)."""

    _READ_OR_CHANGED = 0x0FFF  # every event but those of the watch itself
    _NONBLOCK = os.O_NONBLOCK | os.O_CLOEXEC

    def __init__(self, folder: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(self._NONBLOCK)
        assert libc.inotify_add_watch(self._fd, os.fsencode(folder), self._READ_OR_CHANGED) >= 0

    def seen(self) -> list[str]:
        """The names of what was touched since the last call."""
        try:
            data = os.read(self._fd, 1 << 16)
        except BlockingIOError:
            return []
        names, start = [], 0
        while start < len(data):
            _, mask, _, length = struct.unpack_from("iIII", data, start)
            name = data[start + 16 : start + 16 + length].rstrip(b"\0").decode()
            names.append(f"{name} {mask:#x}")
            start += 16 + length
        return names

    def close(self) -> None:
        os.close(self._fd)


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of each kind, and links to it from the folders that are allowed. It is also home."""
    folder, inside, project = tmp_path / "outside", tmp_path / "inside", tmp_path / "project"
    shutil.copytree(PROJECT, project)
    for one in (folder, inside, project / "Saved/URLab/Replays", project / "Imports", project / "Uploads"):
        one.mkdir(parents=True)
    (folder / "secret_robot.xml").write_text(ROBOT)
    (folder / "secret_lab.toml").write_text(LEVEL)
    (folder / "secret_ep.json").write_text(RECORDING)
    (folder / "secret_film.mp4").write_bytes(b"\0\0\0\x14ftypisomURLB")
    np.save(folder / "secret_hills.npy", np.eye(3))
    homes = (project / "Levels", project / "Saved/URLab/Replays", project / "Imports", project / "Uploads", project)
    for linking in (inside, *homes):
        (linking / "door").symlink_to(folder)
        for name in {*PATHS.values(), *map(_missing, PATHS.values())}:
            (linking / f"link_{name}").symlink_to(folder / name)
            (linking / f"link_{name.replace('.', '-')}").symlink_to(folder / name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def jailed(outside: Path, make_server: Any, connect: Any) -> Any:
    """A client of a server that plays, with a recording, and may use one folder and its project."""
    roots = (outside.parent / "inside",)
    wire = connect(make_server("solo", project=outside.parent / "project", model_roots=roots, write_roots=roots))
    wire.hello()
    wire.ok("set_mode", mode="direct")
    wire.ok("recording_start")
    wire.ok("step", n_steps=3)
    wire.ok("recording_stop")
    wire.ok("recording_save")
    return wire


def _request(field: str, text: str) -> tuple[str, dict[str, Any]]:
    op, *names = field.split(".")
    fields: dict[str, Any] = {names[0]: text}
    if op == "upload_asset":
        fields["data"] = ROBOT.encode()
    if op == "spawn_grid":
        fields |= {"base_actor_id": "g", "count_x": 1, "count_y": 1}
    if field == "recording_export.also":
        return op, {"format": "parquet", "path": "recording.json", "also": [text]}
    if op == "recording_export":
        fields |= {"format": "mp4"} if "path" in fields else {"format": "mp4", "path": "recording.json"}
    if field == "spawn_actor.heightfield.image":
        fields = {"blueprint": "hills", "heightfield": {"image": text, "size": [1.0, 1.0, 1.0]}}
    return op, fields


def _content(folder: Path) -> dict[str, Any]:
    return {one.name: (one.read_bytes(), one.stat().st_mtime_ns) for one in sorted(folder.iterdir())}


@pytest.mark.parametrize("field", sorted(PATHS))
def test_no_path_leads_out(jailed: Any, outside: Path, field: str) -> None:
    before, elsewhere = _content(outside), sorted(one.name for one in outside.parent.iterdir())
    watch, name = Watch(outside), PATHS[field]
    try:
        for escape, spell in ESCAPES.items():
            replies = {}
            for file in (name, _missing(name)):
                op, fields = _request(field, spell(outside, file))
                if op == "recording_start":
                    jailed.ask("recording_stop")
                reply = jailed.ask(op, **fields) if _can_be_sent(fields) else {"op": "error", "message": "not sent"}
                replies[file] = _missing(repr(_ended(jailed, reply)))
                _check_refused(escape, field, reply)
            assert replies[name] == replies[_missing(name)], f"{escape} tells whether there is a file"
            assert watch.seen() == [], escape
    finally:
        watch.close()
    assert _content(outside) == before
    assert sorted(one.name for one in outside.parent.iterdir()) == elsewhere


def _ended(jailed: Any, reply: dict[str, Any]) -> dict[str, Any]:
    """A reply without what differs each time; an export that it tells of has ended."""
    export_id = reply.pop("export_id", None)
    while export_id and jailed.ok("export_status", export_id=export_id)["exports"][0]["state"] in _UNFINISHED:
        pass
    return reply


_UNFINISHED = ("waiting", "running")


def _can_be_sent(fields: dict[str, Any]) -> bool:
    return "\ud800" not in repr(fields) and "\\ud800" not in repr(fields)


_ODD_NAMES = (
    "a link and dots", "wide dots", "a dot leader", "encoded dots", "a variable", "a user's home",
    "relative backslashes", "wide slashes", "division slashes",
)  # fmt: skip
"""These are names of no special meaning: a file of that name may be made inside."""


def _check_refused(escape: str, field: str, reply: dict[str, Any]) -> None:
    """Nothing was done; a name is a name, and a save may take an odd one."""
    done = {
        "destroy_asset.asset_path": not reply.get("was_found", False),
        "begin_pie.level_path": reply.get("state") == "compile_failed",
        "recording_start.name": True,
        "recording_start.path": escape in _ODD_NAMES,
        "recording_save.path": escape in _ODD_NAMES,
        "recording_export.out": escape in _ODD_NAMES,
        "create_level.name": escape in _ODD_NAMES,
        "save_level.name": escape in _ODD_NAMES,
        "upload_asset.name": escape in _ODD_NAMES,
    }
    assert reply["op"] == "error" or done.get(field, False), (escape, reply)


def test_a_recording_that_is_called_after_a_path_is_saved_in_the_replay_folder(jailed: Any, outside: Path) -> None:
    replays = outside.parent / "project/Saved/URLab/Replays"
    before = _content(outside)
    for escape, spell in ESCAPES.items():
        name = spell(outside, "ep")
        jailed.ask("recording_stop")
        if not _can_be_sent({"name": name}) or jailed.ask("recording_start", name=name)["op"] == "error":
            continue
        jailed.ok("step", n_steps=1)
        reply = jailed.ask("recording_save")
        if reply["op"] != "error":
            assert Path(reply["absolute_path"]).parent == replays, escape
    assert _content(outside) == before


# -- the usual folders --------------------------------------------------------------------------------------------


@pytest.fixture
def at_home(outside: Path, make_server: Any, connect: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client of a server with the usual folders on loopback, whose user is at home and has a file of every kind."""
    (outside.parent / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(outside.parent / "tmp"))
    for name in (".bashrc", ".ssh/authorized_keys", ".config/autostart/x.desktop", "package.json"):
        (outside / name).parent.mkdir(parents=True, exist_ok=True)
        (outside / name).write_text("precious")
    wire = connect(make_server("solo", project=outside.parent / "project"))
    wire.hello()
    wire.ok("set_mode", mode="direct")
    wire.ok("recording_start", name="$(touch owned)")
    wire.ok("step", n_steps=3)
    return wire


def test_a_client_writes_nothing_in_the_home_folder(at_home: Any, outside: Path) -> None:
    before = {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()}
    for name in (*map(str, before), f"{outside}/.profile", f"{outside}/new.json", f"{outside}/bin/new.json"):
        reply = at_home.ask("recording_save", path=name)
        assert reply["code"] == "path_not_writable", reply
    assert "--write-root" in reply["message"]
    assert {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()} == before
    at_home.ok("replay_load", path=at_home.ok("recording_save")["absolute_path"])


def test_a_client_makes_new_files_and_replaces_recordings_in_the_temporary_folder(at_home: Any, outside: Path) -> None:
    temporary = outside.parent / "tmp"
    (temporary / "settings.json").write_text('{"precious": true}')
    for _ in range(2):
        at_home.ok("recording_save", path=str(temporary / "new" / "ep.json"))
    for name in ("settings.json", ".hidden.json", "ep.sh", "ep"):
        assert at_home.refused("recording_save", path=str(temporary / name)) == "path_not_writable"
    assert sorted(one.name for one in temporary.iterdir() if not one.name.startswith("urlab-")) == [
        "new",
        "settings.json",
    ]
    assert (temporary / "settings.json").read_text() == '{"precious": true}'


# -- the chain that once led out ----------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["outside", "inside"])
def test_a_level_that_names_a_file_is_opened_only_if_that_may_be_read(jailed: Any, outside: Path, place: str) -> None:
    file = outside.parent / place / "own.xml"
    file.write_text(ROBOT)
    level = LEVEL + f'[[actors]]\nblueprint = "{file}"\nname = "r"\n'
    (outside.parent / "project/Levels/naming.toml").write_text(level)
    watch = Watch(outside)
    reply = jailed.ok("begin_pie", level_path="naming")
    if place == "inside":
        assert reply["state"] == "ready", reply
        assert [one["prefix"] for one in reply["handshake_payload"]["articulations"]] == ["r"]
    else:
        assert reply["state"] == "compile_failed"
        assert f"--model-root {outside}" in reply["compile_error"]
        assert watch.seen() == []
    watch.close()


def test_a_model_that_takes_all_memory_costs_only_the_level_that_names_it(jailed: Any, outside: Path) -> None:
    bomb = '<mujoco><asset><hfield name="h" size="1 1 1 1" nrow="60000" ncol="60000"/></asset></mujoco>'
    file = outside.parent / "inside" / "bomb.xml"
    file.write_text(bomb)
    (outside.parent / "project/Levels/bombed.toml").write_text(
        LEVEL + f'[[actors]]\nblueprint = "{file}"\nname = "bomb"\n'
    )
    reply = jailed.ok("begin_pie", level_path="bombed", timeout_s=100.0)
    assert reply["state"] == "compile_failed"
    assert "for want of memory: it may have 4096 MiB" in reply["compile_error"]
    jailed.ok("load_level", level_path="solo")


# -- bounds -------------------------------------------------------------------------------------------------------

KEPT_NAMES = [
    ("spawn_actor", {"blueprint": "box"}, "actor_id"),
    ("spawn_grid", {"blueprint": "box", "count_x": 1, "count_y": 1}, "base_actor_id"),
    ("spawn_light", {}, "actor_id"),
    ("spawn_actor", {"blueprint": "box"}, "keyframe"),
    ("duplicate_actor", {"target": "x"}, "new_actor_id"),
    ("recording_start", {}, "name"),
    ("save_state", {}, "name"),
]


@pytest.mark.parametrize(("op", "fields", "name"), KEPT_NAMES)
def test_a_name_that_is_kept_has_at_most_256_characters(jailed: Any, op: str, fields: Any, name: str) -> None:
    reply = jailed.ask(op, **fields, **{name: "n" * 257})
    assert (reply["op"], reply["code"]) == ("error", "bad_value")
    assert "256" in reply["message"]
    assert name in reply["message"]
    assert jailed.ask(op, **fields, **{name: "n" * 256}).get("code") != "bad_value"


def test_tags_texts_and_configs_are_bounded(jailed: Any) -> None:
    def code(op: str, **fields: Any) -> Any:
        reply = jailed.ask(op, **fields)
        return reply.get("code"), next((limit for limit in ("100", "256", "4096", "65536") if limit in str(reply)), "")

    assert code("spawn_actor", blueprint="box", tags=["t"] * 101) == ("bad_value", "100")
    assert code("spawn_actor", blueprint="box", tags=["t" * 257]) == ("bad_value", "256")
    assert code("spawn_actor", blueprint="box", config={"twist": "x" * 70_000}) == ("bad_value", "65536")
    assert code("set_overlay_text", text="t" * 4097) == ("bad_value", "4096")
    assert code("draw_marker", location=[0, 0, 0], color=[0, 0, 0], label="t" * 4097) == ("bad_value", "4096")
    assert code("create_level", name="t" * 4097) == ("bad_value", "4096")
    assert jailed.ok("spawn_actor", blueprint="box", tags=["t" * 256] * 100, actor_id="a" * 256)


def test_no_error_repeats_a_request_of_any_length(jailed: Any) -> None:
    for reply in (jailed.ask("x" * 1_000_000), jailed.ask("destroy_actor", target="x" * 1_000_000)):
        assert reply["op"] == "error"
        assert len(reply["message"]) < 11_000


@pytest.mark.parametrize("name", ["two\nlines", "\x1b[2J", "bell\a", "nul\0"])
def test_a_recording_has_a_name_that_can_be_printed(jailed: Any, name: str) -> None:
    assert jailed.refused("recording_start", name=name) == "bad_value"
