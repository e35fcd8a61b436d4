"""`urlab eval tasks`: what a policy can be asked to do."""

from typing import Any

from rich.markup import escape
from rich.table import Table

from urlab.cli import options as opt
from urlab.cli.console import print_json, stdout
from urlab.cli.evaluation.extra import FOR_TASKS, need_packages


def tasks(as_json: opt.AsJson = False) -> None:
    """List the tasks that are shipped.

    Example: [bold]urlab eval tasks[/bold]; in a script: [bold]urlab eval tasks --json | jq -r '.[].name'[/bold]
    """
    need_packages(FOR_TASKS)
    rows = _rows()
    if as_json:
        print_json(rows)
        return
    table = Table(title="tasks", title_justify="left")
    for heading in ("task", "robot", "kind", "steps", "what"):
        table.add_column(heading, overflow="fold", justify="right" if heading == "steps" else "left")
    for row in rows:
        cells = (row["name"], row["embodiment"], row["category"], str(row["num_steps"]), row["title"])
        table.add_row(*map(escape, cells))
    stdout().print(table)


def _rows() -> list[dict[str, Any]]:
    from urlab.evaluation.tasks.task import find_task, task_names

    return [
        {
            "name": task.name,
            "embodiment": task.embodiment,
            "category": task.category,
            "num_steps": task.num_steps,
            "title": task.title,
            "instructions": list(task.instructions),
        }
        for task in map(find_task, task_names())
    ]
