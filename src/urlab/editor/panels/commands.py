"""The command palette (Ctrl+K): every op that changes the world and needs no arguments."""

from functools import partial
from typing import Any

from urlab.editor.panels.base import Panel
from urlab_wire.catalogue import CATALOGUE

_NOT_OFFERED = frozenset((
    "hello", "step", "set_mode", "set_control_source", "set_twist", "set_sim_options", "restore_state", "replay_load",
    "replay_set_active", "replay_seek", "set_viewport_overlays", "editor_address",
))  # fmt: skip
"""Ops that mean nothing by themselves, though no field is always needed."""


class CommandPalette(Panel):
    """No widgets: viser shows the palette by itself."""

    order = 1

    def build(self) -> None:
        """One command for each op."""
        for op in offered_ops():
            command = self.gui.add_command(
                op.replace("_", " "), description=(CATALOGUE[op].request.__doc__ or "").partition("\n")[0]
            )
            command.on_trigger(partial(self._run, op))

    def _run(self, op: str, _event: Any) -> None:
        if self.page.change(op.replace("_", " "), lambda client: client.runtime.call(op)) is not None:
            self.page.tell(op.replace("_", " "), "Done.")


def offered_ops() -> list[str]:
    """Ops that change something and need nothing to be said."""
    return [
        name
        for name, spec in CATALOGUE.items()
        if not spec.required_fields() and not spec.reads and name not in _NOT_OFFERED
    ]
