"""The page about tasks: its example works, and it names everything that there is."""

import re
from pathlib import Path

import msgspec
import pytest

from urlab.evaluation.goals.scoring import sample_layout
from urlab.evaluation.tasks.goal import SUBGOALS
from urlab.evaluation.tasks.objects import COLORS
from urlab.evaluation.tasks.oracle_steps import ORACLE_STEPS
from urlab.evaluation.tasks.shapes import SHAPES
from urlab.evaluation.tasks.task import parse_task, task_names

PAGE = (Path(__file__).parents[4] / "docs" / "evaluation-tasks.md").read_text()


def row_of(word: str) -> str:
    """The row (or rows) of the tables that begin with the word."""
    rows = [line for line in PAGE.splitlines() if re.match(rf"\| (`\w+`, )?`{re.escape(word)}`", line)]
    assert rows, f"{word} needs a row of a table"
    return "\n".join(rows)


def test_the_example_is_a_task() -> None:
    text = re.search(r"```toml\n(# coin_in_cup.*?)```", PAGE, re.DOTALL)
    assert text is not None
    task = parse_task(text[1], name="coin_in_cup", source="the page")
    assert task.oracle
    for seed in range(20):
        assert "{" not in sample_layout(task, seed).instruction


@pytest.mark.parametrize(("word", "kind"), [*SHAPES.items(), *SUBGOALS.items(), *ORACLE_STEPS.items()], ids=str)
def test_every_shape_subgoal_and_step_is_described_with_its_fields(word: str, kind: type[msgspec.Struct]) -> None:
    common = {"weight", "skip_steps", "hold_steps", "never_reset", "released", "held_by", "leaving"}
    for name in common:
        assert row_of(name)
    for field in msgspec.structs.fields(kind):
        if field.name not in common:
            assert f"`{field.name}`" in row_of(word)


def test_every_task_colour_and_relation_is_named() -> None:
    for word in task_names():
        row_of(word)
    for word in ("in", "out of", "on", "below", "near", "left", "right", "front", "back", "between"):
        row_of(word)
    for color in COLORS:
        assert color in row_of("color")
