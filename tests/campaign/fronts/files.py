"""Files: every path-like field of the catalogue with every escape, races with links, damaged files.

The server may read and write one folder. Beside it is a tree that no process may touch, watched by inotify; what is in
it must not come back in any reply either.
"""

import contextlib
import io
import json
import os
import random
import shutil
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import msgspec
import zmq

from tests.campaign import values
from tests.campaign.canary import Canary
from tests.campaign.fronts.requests import judge
from tests.campaign.outcome import Outcome, Plan
from tests.campaign.processes import UrlabServer, scratch
from urlab_wire import CATALOGUE

ABOUT = "path escapes over every path-like field, link races, damaged recordings, levels, models and archives"
SECRET = "urlab-canary-7c1e"
PATH_FIELDS = ("path", "level_path", "asset_path", "blueprint", "name", "config", "out", "heightfield")
_REPLY_MS = 130_000

MODEL = f"""<mujoco model="secret"><!-- {SECRET} -->
<worldbody><body name="{SECRET}"><freejoint/><geom size=".1"/></body>
</worldbody></mujoco>"""
MESH = f"# {SECRET}\nv 0 0 0\nv .1 0 0\nv 0 .1 0\nv 0 0 .1\nf 1 2 3\nf 1 2 4\nf 2 3 4\nf 1 3 4\n"
LEVEL = (
    'version = 1\nname = "secret"\n[[actors]]\nblueprint = "secret.xml"\nname = "secret"\nlocation = [0.0, 0.0, 0.0]\n'
)
GOOD = """<mujoco model="rod"><worldbody><body name="rod" pos="0 0 1"><joint name="hinge" axis="0 1 0"/>
<geom size=".1 .4" type="capsule"/></body></worldbody>
<actuator><motor name="push" joint="hinge"/></actuator></mujoco>"""


class _Wire:
    """A driver over ZeroMQ, whose replies are judged."""

    def __init__(self, server: UrlabServer, outcome: Outcome) -> None:
        self.outcome = outcome
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVTIMEO, _REPLY_MS)
        self._socket.connect(server.endpoint)
        self.session_id: str | None = None
        self.session_id = self.ask("hello")["session_id"]

    def ask(self, op: str, **fields: Any) -> Any:
        self._socket.send(msgpack.packb({"op": op, "session_id": self.session_id, **fields}))
        reply = self._socket.recv()
        where = f"{op} {str(fields)[:300]}"
        self.outcome.check(SECRET.encode() not in reply or SECRET in str(fields), "a secret in a reply", where)
        return judge(self.outcome, reply, where)

    def close(self) -> None:
        self._context.destroy(linger=0)


def run(plan: Plan, outcome: Outcome) -> None:
    with scratch() as folder:
        inside, outside = folder / "inside", folder / "outside"
        inside.mkdir()
        _make_outside(outside)
        options = ("--model-root", str(inside), "--write-root", str(inside))
        with UrlabServer(inside, *options, memory_mb=2000) as server:
            wire, canary = _Wire(server, outcome), Canary(outside)
            parts = [_escapes, _references, _races, _recordings, _levels, _models, _archives]
            for part in parts:
                seconds = 0.3 if plan.short else max(plan.seconds / len(parts), 2.0)
                part(wire, inside, outside, random.Random(f"{plan.seed}/files/{part.__name__}"), seconds)
                for event, count in canary.events().items():
                    outcome.lose("touched outside", f"{part.__name__}: {event} x {count}")
                if not server.is_alive:
                    break
            wire.close()
            canary.close()
            _check_inside(inside, outcome)
            server.judge(outcome)


def _make_outside(outside: Path) -> None:
    (outside / "deep").mkdir(parents=True)
    for name, text in (
        *(("secret.xml", MODEL), ("secret.obj", MESH), ("secret.toml", LEVEL), ("secret.urdf", MODEL)),
        *(
            ("secret.json", json.dumps({"frames": [], "name": SECRET})),
            ("deep/secret.xml", MODEL),
            ("secret.png", SECRET),
        ),
    ):
        (outside / name).write_text(text, encoding="utf-8")


def _check_inside(inside: Path, outcome: Outcome) -> None:
    """No half-written file is left, and no copy of a secret."""
    for path in inside.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.name != "log":
            outcome.check(not path.name.endswith(".part"), "half-written files", path)
            is_source = "refer" in path.name or path.stat().st_size > 10_000_000
            outcome.check(is_source or SECRET.encode() not in path.read_bytes(), "a secret was copied", path)


# -- escapes --------------------------------------------------------------------------------------------------------


def path_fields() -> Iterator[tuple[str, str]]:
    """(op, field) of everything in the catalogue that may be taken for a path."""
    for op, spec in CATALOGUE.items():
        for field in msgspec.structs.fields(spec.request):
            if field.encode_name in PATH_FIELDS or "path" in field.encode_name or "file" in field.encode_name:
                yield op, field.encode_name


def _spellings(inside: Path, outside: Path) -> list[str]:
    ways = []
    for name in ("secret.xml", "secret.obj", "secret.toml", "secret.json", "secret", "deep/secret.xml", "new.json", ""):
        path = outside / name
        relative = os.path.relpath(path, inside / "project" / "Levels")
        up = "../" * 12 + str(path).lstrip("/")
        ways += [
            *(
                str(path),
                f"/{path}",
                f"//{path}",
                f"/Game/URLab/{path}",
                f"/Game/URLab//{path}",
                f"/Game/Levels/{path}",
            ),
            *(
                f"/Game/{path}",
                f"/Game/URLab/{up}",
                f"/Game/Levels/{relative}",
                relative,
                up,
                f"x/{up}",
                f"./{relative}",
            ),
            *(
                f"{inside}/{os.path.relpath(path, inside)}",
                f"/proc/self/root{path}",
                f"/proc/self/cwd/{up}",
                f"file://{path}",
            ),
            *(
                f"{inside}/link/{name}",
                f"{inside}/project/Levels/link/{name}",
                f"link/{name}",
                f"/Game/Levels/link/{name}",
            ),
            *(f"{inside}/link_{Path(name).name}", f"link_{Path(name).name}", f"{path}/", f"{path}/.", f"{path}\0.xml"),
            *(f"~/{up}", str(path).replace("/", "\\"), str(path).upper(), f"{path}#x", f"{path}?x", f"{path}\n"),
        ]
    return ways


def _escapes(wire: _Wire, inside: Path, outside: Path, chance: random.Random, seconds: float) -> None:
    """Every field with every spelling; in order when there is time for all, else as many as there is time for."""
    for folder in (inside, inside / "project" / "Levels", inside / "project" / "Saved" / "URLab" / "Replays"):
        folder.mkdir(parents=True, exist_ok=True)
        _link(folder / "link", outside)
        for name in ("secret.xml", "secret.obj", "secret.toml", "secret.json", "secret", "new.json"):
            _link(folder / f"link_{name}", outside / name)
    tries = [(op, field, way) for op, field in path_fields() for way in _spellings(inside, outside)]
    chance.shuffle(tries)
    until = time.monotonic() + seconds
    wire.ask("recording_start", name="canary")
    wire.ask("step", n_steps=3)
    wire.ask("recording_stop")
    wire.ask("recording_save", path="canary.json")
    for op, field, way in tries:
        if time.monotonic() > until:
            break
        wire.outcome.tried["path escapes"] += 1
        if op == "save_level":
            wire.ask("create_level", name="lab")
        wire.ask(op, **{**_needed(op), field: _value(field, way)})


def _value(field: str, way: str) -> Any:
    """What a field holds that leads to a file."""
    if field == "heightfield":
        return {"image": way, "size": [1.0, 1.0, 1.0]}
    return {"file": way} if field == "config" else way


def _needed(op: str) -> dict[str, Any]:
    if op == "recording_export":
        return {"path": "canary.json", "format": "mp4"}
    plain = {str: "x", float: 1.0, int: 1, bool: False, bytes: GOOD.encode()}
    fields = msgspec.structs.fields(CATALOGUE[op].request)
    return {one.encode_name: plain.get(one.type, [0, 0, 0]) for one in fields if one.required}


def _link(path: Path, target: Path) -> None:
    with contextlib.suppress(FileExistsError):
        path.symlink_to(target)


_SHAPE = '<worldbody><geom type="mesh" mesh="m"/></worldbody>'
_URDF = '<robot name="r"><link name="l"><visual><geometry><mesh filename="{}"/></geometry></visual></link></robot>'
_HEIGHTS = '<hfield name="h" file="{0}/secret.png" size="1 1 1 1"/>'
_TEXTURE = '<texture type="2d" name="t" file="secret.png"/>'
_ATTACHED = '<worldbody><attach model="o" body="b" prefix="p"/></worldbody>'
REFERENCES = (
    f'<mujoco><asset><mesh name="m" file="{{0}}/secret.obj"/></asset>{_SHAPE}</mujoco>',
    f'<mujoco><compiler meshdir="{{0}}"/><asset><mesh name="m" file="secret.obj"/></asset>{_SHAPE}</mujoco>',
    f'<mujoco><compiler assetdir="{{0}}"/><asset>{_TEXTURE}</asset></mujoco>',
    f'<mujoco><asset><model name="o" file="{{0}}/secret.xml"/></asset>{_ATTACHED}</mujoco>',
    f"<mujoco><asset>{_HEIGHTS}</asset></mujoco>",
    '<mujoco><include file="{0}/secret.xml"/></mujoco>',
    '<!DOCTYPE x [<!ENTITY e SYSTEM "file://{0}/secret.xml">]><mujoco model="&e;"/>',
    _URDF.format("file://{0}/secret.obj"),
    _URDF.format("package://{0}/secret.obj"),
)
"""Models whose files are in the folder that is put into them."""


def _references(wire: _Wire, inside: Path, outside: Path, chance: random.Random, seconds: float) -> None:
    """Models inside that refer to files outside, spelled in several ways; and levels that do."""
    until, number = time.monotonic() + seconds, 0
    ways = [
        str(outside),
        os.path.relpath(outside, inside),
        "link",
        f"{inside}/link",
        f"//{outside}",
        f"{inside}/../outside",
    ]
    while time.monotonic() < until:
        number += 1
        wire.outcome.tried["models that refer outside"] += 1
        text = chance.choice(REFERENCES).format(chance.choice(ways))
        path = inside / f"refer{number}.{'urdf' if text.startswith('<robot') else 'xml'}"
        path.write_text(text, encoding="utf-8")
        wire.ask("import_xml", path=str(path))
        path.unlink()
        level = inside / "project" / "Levels" / f"refer{number}.toml"
        level.write_text(LEVEL.replace("secret.xml", f"{chance.choice(ways)}/secret.xml"), encoding="utf-8")
        wire.ask("load_level", level_path=f"refer{number}")
        level.unlink()


RACED = (
    ("replay_load", "secret.json"),
    ("recording_save", "new.json"),
    ("import_xml", "secret.xml"),
    ("import_xml", "secret.obj"),
    ("load_level", "secret.toml"),
)


def _races(wire: _Wire, inside: Path, outside: Path, chance: random.Random, seconds: float) -> None:
    """Files and folders that are links every other moment, while the server opens and writes them."""
    stopping = threading.Event()
    (inside / "good").mkdir(exist_ok=True)
    for name, text in (("secret.xml", GOOD), ("secret.obj", MESH.replace(SECRET, "good")), ("secret.json", "{}")):
        (inside / "good" / name).write_text(text, encoding="utf-8")

    def flip() -> None:
        while not stopping.is_set():
            for target in (inside / "good", outside):
                _link(inside / "flip_new", target)
                (inside / "flip_new").replace(inside / "flip")

    thread = threading.Thread(target=flip, daemon=True)
    thread.start()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        wire.outcome.tried["races with links"] += 1
        op, name = chance.choice(RACED)
        wire.ask(op, **{"level_path" if op == "load_level" else "path": f"{inside}/flip/{name}"})
    stopping.set()
    thread.join()


# -- damaged files --------------------------------------------------------------------------------------------------


def _recordings(wire: _Wire, inside: Path, outside: Path, chance: random.Random, seconds: float) -> None:
    """A recording of the server's own, with spoilt bytes, as JSON and as CSV."""
    wire.ask("begin_pie", level_path="arena", step_mode="direct")
    wire.ask("recording_start", name="good")
    wire.ask("step", n_steps=20)
    wire.ask("recording_stop")
    saved = wire.ask("recording_save", path="good.json").get("absolute_path")
    if not wire.outcome.check(saved is not None, "no recording could be made"):
        return
    good = Path(saved).read_bytes()
    csv = b"time,hip,knee\n" + b"".join(b"%f,0.1,0.2\n" % (0.002 * row) for row in range(50))
    sources = (
        (good, ".json"),
        (good, ".json"),
        (csv, ".csv"),
        (chance.randbytes(1000), ".json"),
        (b"[" * 10_000, ".json"),
    )
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        wire.outcome.tried["damaged recordings"] += 1
        content, suffix = chance.choice(sources)
        path = Path(saved).with_name(f"damaged{suffix}")
        path.write_bytes(values.spoil(chance, content))
        if wire.ask("replay_load", path=str(path)).get("op") == "replay_load_ok":
            wire.ask("replay_start")
            wire.ask("step", n_steps=2)
            wire.ask("replay_stop")


def _levels(wire: _Wire, inside: Path, outside: Path, chance: random.Random, seconds: float) -> None:
    levels = inside / "project" / "Levels"
    sources = [path.read_bytes() for path in levels.glob("*.toml") if not path.is_symlink()]
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        wire.outcome.tried["damaged levels"] += 1
        (levels / "damaged.toml").write_bytes(values.spoil(chance, chance.choice(sources)))
        wire.ask("load_level", level_path="damaged")
    (levels / "damaged.toml").unlink()
    wire.ask("load_level", level_path="arena")


def _models(wire: _Wire, inside: Path, outside: Path, chance: random.Random, seconds: float) -> None:
    """Models and meshes with spoilt bytes, and bombs; each is compiled in a child process."""
    bombs = [
        b"<mujoco><worldbody>" + b"<body>" * 3000 + b"</body>" * 3000 + b"</worldbody></mujoco>",
        b"<mujoco>" + b"<a/>" * 500_000 + b"</mujoco>",
        b'<mujoco><worldbody><replicate count="30000000"><geom size=".1"/></replicate></worldbody></mujoco>',
        b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><mujoco>&b;</mujoco>',
    ]
    sources = [
        (path.read_bytes(), ".xml") for path in (inside / "project" / "Levels").glob("*.xml") if not path.is_symlink()
    ]
    sources += [(MESH.encode().replace(SECRET.encode(), b"m"), ".obj"), (chance.randbytes(3000), ".stl")]
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        wire.outcome.tried["damaged models"] += 1
        content, suffix = chance.choice(sources)
        is_bomb = chance.random() < 0.05
        path = inside / f"damaged{suffix}"
        path.write_bytes(chance.choice(bombs) if is_bomb else values.spoil(chance, content))
        wire.ask("import_xml", path=str(path))
        shutil.rmtree(inside / "project" / "Imports", ignore_errors=True)


def _archives(wire: _Wire, inside: Path, outside: Path, chance: random.Random, seconds: float) -> None:
    """Zip files whose names lead outside, whose files are links or bombs, and with spoilt bytes."""
    uploads = inside / "project" / "Uploads"
    names = ["rod.xml", "a/rod.xml", "..", ".", "rod.xml/rod.xml", *_spellings(uploads / "rod-zip", outside)]
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        wire.outcome.tried["hostile archives"] += 1
        data = io.BytesIO()
        with contextlib.suppress(ValueError, OSError), zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in dict.fromkeys(("rod.xml", *chance.choices(names, k=chance.randrange(4)))):
                info = zipfile.ZipInfo("x")
                info.filename, info.compress_type = name.replace("\0", "?"), zipfile.ZIP_DEFLATED
                info.external_attr = chance.choice((0, 0o100644, 0o120777, 0o40755, 0o10644)) << 16
                content = chance.choice((GOOD.encode(), str(outside / "secret.xml").encode(), bytes(1_000_000)))
                archive.writestr(info, GOOD.encode() if name == "rod.xml" else content)
        content = data.getvalue() if chance.random() < 0.4 else values.spoil(chance, data.getvalue())
        reply = wire.ask("upload_asset", name=chance.choice(("rod.zip", "rod.mjz")), data=content)
        if reply.get("op") == "upload_asset_ok":
            is_inside = all(Path(one).resolve().is_relative_to(uploads) for one in reply["models"])
            wire.outcome.check(is_inside, "an upload outside its folder", reply)
            if chance.random() < 0.05:
                wire.ask("import_xml", path=reply["path"])
