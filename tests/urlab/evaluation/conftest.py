"""Tasks, layouts and simulations that several tests share."""

from collections.abc import Callable, Iterator

import pytest

from urlab.evaluation.embodiments import EMBODIMENTS, FRANKA_PANDA, Embodiment
from urlab.evaluation.simulation.actions import Action, parse_action
from urlab.evaluation.simulation.simulation import Simulation
from urlab.evaluation.tasks.layout import Layout
from urlab.evaluation.tasks.task import Task, parse_task
from urlab.geometry import Pose

BLOCK_SIZE_M = 0.05

_TASK = """
embodiment = "{embodiment}"
title = "A block and a drawer"
category = "test"
num_steps = 100
instructions = ["Put the {{block}} on the {{tin}}."]
goal = {{ object = "block", relation = "on", target = "tin" }}

[objects.block]
shape = "box"
size = [0.05, 0.05, 0.05]
color = "red"
labels = ["block"]
x = [-0.1, 0.1]
y = [-0.1, 0.1]

[objects.tin]
shape = "cylinder"
radius = 0.03
height = 0.08
color = "green"
labels = ["tin"]
x = [-0.1, 0.1]
y = [-0.1, 0.1]

[objects.cabinet]
shape = "drawer_cabinet"
size = [0.2, 0.24, 0.14]
travel = 0.12
color = "brown"
labels = ["cabinet"]
fixed = true
x = [0.2, 0.3]
y = [0.0, 0.0]
"""

LAYOUT = Layout(
    seed=0,
    instruction="Put the block on the tin.",
    poses={
        "block": Pose((-0.05, 0.05, 1.025)),
        "tin": Pose((0.0, 0.25, 1.04)),
        "cabinet": Pose((0.3, -0.1, 1.07), (0.9238795, 0.0, 0.0, 0.3826834)),
    },
    joints={"cabinet": {"drawer": 0.06}},
)


def task_for(embodiment: Embodiment) -> Task:
    """Three objects: a free box, a free cylinder, a fixed cabinet with a drawer."""
    return parse_task(_TASK.format(embodiment=embodiment.name), name="block_and_drawer", source="conftest.py")


@pytest.fixture(params=EMBODIMENTS.values(), ids=EMBODIMENTS.keys(), scope="session")
def embodiment(request: pytest.FixtureRequest) -> Embodiment:
    """Every robot in turn."""
    return request.param


@pytest.fixture(scope="session")
def task(embodiment: Embodiment) -> Task:
    """The shared task for the robot whose turn it is."""
    return task_for(embodiment)


@pytest.fixture(scope="session")
def panda_task() -> Task:
    """The shared task for the Panda."""
    return task_for(FRANKA_PANDA)


@pytest.fixture(scope="session")
def layout() -> Layout:
    """Where the objects of the shared task are."""
    return LAYOUT


@pytest.fixture(scope="session")
def _every_simulation(task: Task, embodiment: Embodiment) -> Iterator[Simulation]:
    simulation = Simulation(task, embodiment, cameras=False)
    yield simulation
    simulation.close()


@pytest.fixture
def every_simulation(_every_simulation: Simulation, layout: Layout) -> Simulation:
    """A simulation without cameras of every robot in turn, just reset."""
    _every_simulation.reset(layout)
    return _every_simulation


@pytest.fixture(scope="session")
def _panda_simulation(panda_task: Task) -> Iterator[Simulation]:
    simulation = Simulation(panda_task, FRANKA_PANDA, cameras=False)
    yield simulation
    simulation.close()


@pytest.fixture
def panda_simulation(_panda_simulation: Simulation, layout: Layout) -> Simulation:
    """A simulation without cameras of the Panda, just reset."""
    _panda_simulation.reset(layout)
    return _panda_simulation


@pytest.fixture(scope="session")
def act() -> Callable[..., Action]:
    """``act(embodiment, control_type, numbers, is_rel=True)``."""

    def make(embodiment: Embodiment, control_type: str, numbers: object, is_rel: bool = True) -> Action:
        raw = {"control_type": control_type, "action": numbers, "is_rel": is_rel}
        return parse_action(raw, embodiment, default_is_rel=True)

    return make
