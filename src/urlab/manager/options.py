"""Changing the physics options of a running scene."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from urlab.physics import max_worker_threads
from urlab.physics.options import check_options, read_options, try_options

if TYPE_CHECKING:
    from urlab.manager.manager import Manager


def set_sim_options(manager: "Manager", patch: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a patch as a whole or not at all; returns every option in force."""
    checked = check_options(patch)
    with manager.engine.locked():
        try_options(manager.engine.model, checked)
        manager.engine.options_changed()
        if "num_worker_threads" in checked:
            manager.engine.set_worker_threads(checked["num_worker_threads"])
        return {
            **read_options(manager.engine.model.opt),
            "num_worker_threads": manager.engine.worker_threads,
            "max_worker_threads": max_worker_threads(),
        }
