"""What keys cost: a step of a client with a key beside one on loopback, encrypted pictures beside plain ones."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import zmq

from benchmarks.measuring import Plan, Rounds, SampleCounts, Subject, Tick, Timing, a_core_each
from benchmarks.processes import Server, connect
from benchmarks.reporting import Panel, PanelBar, Report, Table
from benchmarks.scenes import scene_targets
from urlab.access import KeyPair, KeysFolder, Role
from urlab.access.keys import client_file, write_client_file
from urlab.transport.guard import new_pair

FULL = Plan(("arm",), 12, SampleCounts(400, 20, 100, 5))
QUICK = Plan(("arm",), 3, SampleCounts(100, 10, 50, 5), quick=True)

PICTURES = {"320 x 240 RGB": 320 * 240 * 3, "640 x 480 RGB": 640 * 480 * 3, "1280 x 720 depth": 1280 * 720 * 4}
_PLAIN, _KEYS = "plain", "keys"
_TOPIC = b"camera"
_PATIENCE_MS = 10_000


def measure(plan: Plan, tick: Tick) -> Report:
    """Steps of the first scene, then pictures of some sizes."""
    tick("steps")
    steps = _measure_steps(plan)
    pictures = {}
    for name, size in PICTURES.items():
        tick(name)
        pictures[name] = _measure_pictures(plan, size)
    rows = [("a step", steps), *pictures.items()]
    return Report(
        title="What encryption costs",
        data={"steps": steps, "pictures": pictures},
        tables=[
            Table(
                "p50 / p99 in us; a picture is timed from its sending to its arrival, in one process",
                ("", "without keys", "with keys", "keys cost"),
                [(name, one[_PLAIN].pair, one[_KEYS].pair, _cost(one)) for name, one in rows],
            )
        ],
        bars=[],
        panels=[
            Panel(name, "us", [PanelBar(way, [one[way].p50_us], one[way].pair, one[way].p99_us) for way in one])
            for name, one in rows
        ],
    )


def _cost(timings: dict[str, Timing]) -> str:
    plain, keys = timings[_PLAIN].p50_us, timings[_KEYS].p50_us
    return f"{keys - plain:+.0f} us, x {keys / plain:.2f}"


def _measure_steps(plan: Plan) -> dict[str, Timing]:
    rounds = Rounds()
    with TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        targets = scene_targets(plan.scenes[0], folder)
        key = _make_key(folder)
        plain = stack.enter_context(Server(targets))
        keyed = stack.enter_context(Server([*targets, "--keys", str(folder / "keys")]))
        clients = {
            _PLAIN: stack.enter_context(connect(plain.step_endpoint)),
            _KEYS: stack.enter_context(connect(keyed.step_endpoint, key=key)),
        }
        subjects = [Subject(way, client.step) for way, client in clients.items()]
        with a_core_each(plain.pid, keyed.pid):
            for _ in range(plan.rounds):
                rounds.measure(plan.counts, subjects)
    return {way: rounds.timing(way) for way in clients}


def _make_key(folder: Path) -> Path:
    keys, pair = KeysFolder(folder / "keys"), new_pair()
    keys.add("bench", Role.DRIVER, pair.public)
    file = folder / "bench.key"
    write_client_file(file, client_file("bench", pair, keys.server_pair(new_pair).public))
    return file


def _measure_pictures(plan: Plan, size: int) -> dict[str, Timing]:
    rounds, picture = Rounds(), bytes(size)
    with _stream(None, picture) as plain, _stream((new_pair(), new_pair()), picture) as keyed:
        for _ in range(plan.rounds):
            rounds.measure(plan.counts, [Subject(_PLAIN, plain), Subject(_KEYS, keyed)])
    return {way: rounds.timing(way) for way in (_PLAIN, _KEYS)}


@contextlib.contextmanager
def _stream(pairs: tuple[KeyPair, KeyPair] | None, picture: bytes) -> Iterator[Callable[[], object]]:
    """A function that sends a picture from one socket to another, and returns when it is there."""
    with zmq.Context() as near, zmq.Context() as far, near.socket(zmq.XPUB) as sender, far.socket(zmq.SUB) as receiver:
        for one in (sender, receiver):
            one.setsockopt(zmq.LINGER, 0)
            one.setsockopt(zmq.RCVTIMEO, _PATIENCE_MS)
        if pairs is not None:
            server, client = pairs
            sender.curve_server = True
            sender.curve_secretkey = server.secret.encode()
            receiver.curve_serverkey = server.public.encode()
            receiver.curve_publickey, receiver.curve_secretkey = client.public.encode(), client.secret.encode()
        port = sender.bind_to_random_port("tcp://127.0.0.1")
        receiver.subscribe(_TOPIC)
        receiver.connect(f"tcp://127.0.0.1:{port}")
        sender.recv()  # the subscription

        def send() -> object:
            sender.send_multipart([_TOPIC, picture], copy=False)
            return receiver.recv_multipart(copy=False)

        yield send
