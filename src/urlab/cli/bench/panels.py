"""How the panels of a bench's picture look: rows of bars with a number at the end of each."""

from collections.abc import Sequence
from typing import Any

INK, FAINT, GRID = "#22303c", "#5f7181", "#e3e8ec"


def tell(panel: Any, row: int, x: float, text: str) -> None:
    """Write beside the end of a bar."""
    panel.annotate(text, (x, row), (4, 0), textcoords="offset points", va="center", fontsize=9, color=INK)


def dress(panel: Any, title: str, unit: str, labels: Sequence[str]) -> None:
    """Title, unit and the names of the rows, the first on top; no frame but the left side."""
    panel.set_title(title, loc="left", fontsize=10, color=INK, fontweight="bold")
    panel.set_yticks(range(len(labels)), labels, fontsize=8, color=INK)
    panel.set_ylim(len(labels) - 0.5, -0.5)
    panel.set_xlabel(unit, fontsize=8, color=FAINT)
    panel.tick_params(axis="x", labelsize=8, colors=FAINT)
    panel.tick_params(axis="y", length=0)
    panel.spines[["top", "right", "bottom"]].set_visible(False)
    panel.xaxis.grid(True, color=GRID, linewidth=0.8)
    panel.set_axisbelow(True)
