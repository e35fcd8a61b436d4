import numpy as np

from urlab.manager import Manager, View
from urlab_wire.enums import ObservationLevel
from urlab_wire.ops.stepping import ArticulationCommand, StepRequest


def push(**bodies: list[float]) -> StepRequest:
    commands = {"hopper": ArticulationCommand(xfrc_applied=bodies)}
    return StepRequest(per_articulation=commands)


def step(manager: Manager, request: StepRequest) -> None:
    manager.step(request, View(ObservationLevel.MINIMAL))


def test_forces_on_several_bodies_act_together(manager: Manager) -> None:
    step(manager, push(foot=[0, 0, 1, 0, 0, 0], crate=[0, 4, 0, 0, 0, 0]))
    dt = manager.engine.model.opt.timestep
    assert np.allclose(manager.engine.data.qvel, [dt, 0, 2 * dt, 0, 0, 0, 0])


def test_a_drag_adds_to_the_forces_of_a_step(manager: Manager) -> None:
    crate = manager.body_id("crate")
    assert crate is not None
    manager.drag(crate, [0, 0, 4, 0, 0, 0])
    step(manager, push(crate=[0, 4, 0, 0, 0, 0]))
    dt = manager.engine.model.opt.timestep
    assert np.allclose(manager.engine.data.qvel[1:4], [0, 2 * dt, 2 * dt])
    assert not manager.engine.data.xfrc_applied.any()


def test_a_released_body_is_left_alone(manager: Manager) -> None:
    crate = manager.body_id("crate")
    assert crate is not None
    manager.drag(crate, [0, 0, 4, 0, 0, 0])
    manager.release()
    step(manager, StepRequest(n_steps=5))
    assert not manager.engine.data.qvel.any()
    assert manager.wrenches.perturbation is None
