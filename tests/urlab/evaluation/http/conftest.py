"""A real server in its own process, and a raw client that sends what GenManip's clients send, byte for byte."""

import http.client
import json
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SHORT = (Path(__file__).parents[1] / "cube_on_plate.toml").read_text()

# What lies on the table sinks into it by micrometres: not reached in the layout, reached once it has settled.
_SETTLED = 'goal = { type = "range", object = "cube", z = [0.9, 1.019999] }'
EASY = SHORT.replace("num_steps = 12", "num_steps = 150").replace(
    'goal = { object = "cube", relation = "on", target = "plate" }', _SETTLED
)

_SERVE = """# preloaded
import json, logging, resource, sys
from pathlib import Path
from urlab.evaluation.http.app import serve
from urlab.evaluation.settings import ServerSettings, TimeLimits
logging.basicConfig(level="WARNING")
logging.getLogger("urlab.evaluation").setLevel("DEBUG")
given = json.loads(sys.argv[1])
for name in ("results", "ready_file"):
    given[name] = Path(given[name])
largest_file = given.pop("largest_file", None)
if largest_file is not None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
if "limits" in given:
    given["limits"] = TimeLimits(**given["limits"])
serve(ServerSettings(**given))
"""


class EvalServer:
    """`serve` in a process of its own."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (("short", SHORT), ("easy", EASY)):
            (folder / f"{name}.toml").write_text(text)
        self.results = Path(settings.pop("results", folder / "results"))
        self.ready = folder / "ready.json"
        given: dict[str, Any] = {
            "port": 0,
            "cameras": False,
            "episodes": 2,
            "tasks": [str(folder / "short.toml"), str(folder / "easy.toml")],
            "results": str(self.results),
            "ready_file": str(self.ready),
            **settings,
        }
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([sys.executable, "-c", _SERVE, json.dumps(given)], stderr=log)
        self._wait()

    def _wait(self) -> None:
        while not self.ready.exists():
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.01)
        told = json.loads(self.ready.read_text())
        assert told["pid"] == self.process.pid
        self.url: str = told["url"]

    def stop(self) -> int:
        """End it as Ctrl-C does; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)

    def kill(self) -> None:
        """End it without a chance to clean up."""
        self.process.kill()
        self.process.wait()

    def client(self) -> "Raw":
        """A raw client; close it."""
        return Raw(self.url)

    def workers(self) -> list[int]:
        """The processes of its workers."""
        return children(self.process.pid)


def children(pid: int) -> list[int]:
    """The child processes of a process, but for the one that its workers are forked from (tests/preloaded.py)."""
    found = [int(word) for one in Path(f"/proc/{pid}/task").glob("*/children") for word in one.read_text().split()]
    return [one for one in found if Path(f"/proc/{one}/comm").read_text().strip() != "preloaded"]


class Raw:
    """Requests as GenManip's clients make them: pickle protocol 5, JSON for control, replies by `pickle.loads`."""

    def __init__(self, url: str, prefix: str = "", **headers: str) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self.connection = http.client.HTTPConnection(host, int(port), timeout=60)
        self.prefix, self.headers = prefix, headers

    def send(self, method: str, path: str, body: bytes | None, content_type: str | None) -> tuple[int, bytes]:
        headers = {**self.headers, **({"Content-Type": content_type} if content_type else {})}
        self.connection.request(method, self.prefix + path, body, headers)
        response = self.connection.getresponse()
        return response.status, response.read()

    def pickled(self, path: str, value: Any, *, protocol: int = 5) -> Any:
        status, body = self.send("POST", path, pickle.dumps(value, protocol), "application/octet-stream")
        assert status == 200, body
        return pickle.loads(body)

    def refused(self, path: str, body: Any, content_type: str | None = "application/octet-stream") -> tuple[int, str]:
        raw = body if isinstance(body, bytes) else pickle.dumps(body, 5)
        status, answer = self.send("POST", path, raw, content_type)
        return status, json.loads(answer)["detail"]

    def json(self, path: str, value: Any) -> Any:
        status, body = self.send("POST", path, json.dumps(value).encode(), "application/json")
        assert status == 200, body
        return json.loads(body)

    def status(self, query: str = "") -> dict[str, Any]:
        status, body = self.send("GET", "/status" + query, None, None)
        assert status == 200, body
        data: dict[str, Any] = json.loads(body)["data"]
        return data

    def start(self, *tasks: str, **more: Any) -> None:
        assert self.json("/start_new_job", {"data": {"config_path": list(tasks), **more}}) == {
            "data": {"success": True}
        }

    def close(self) -> None:
        self.connection.close()


ServerMaker = Callable[..., EvalServer]
RawMaker = Callable[..., Raw]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EvalServer]:
    """One server for all tests that do not break it; each starts a job of its own."""
    made = EvalServer(tmp_path_factory.mktemp("server"))
    yield made
    assert made.stop() == 0
    assert not made.ready.exists()


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[ServerMaker]:
    """Servers with settings of their own."""
    made: list[EvalServer] = []

    def make(**settings: Any) -> EvalServer:
        made.append(EvalServer(tmp_path / f"server{len(made)}", **settings))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture
def raw(server: EvalServer) -> Iterator[Raw]:
    """A raw client of the common server."""
    client = Raw(server.url)
    yield client
    client.close()


@pytest.fixture
def make_raw() -> Iterator[RawMaker]:
    """Raw clients of any server."""
    made: list[Raw] = []

    def make(url: str, **options: str) -> Raw:
        made.append(Raw(url, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()
