"""Tasks: one TOML file in; objects, layouts, a goal and oracle steps, all checked, out.

`task` finds and reads a file, `reading` checks its tables. `objects` are made of `shapes`, and shapes of `parts`;
`layout` is where everything starts; `goal` when the task is done; `oracle_steps` how it can be done.
"""

from urlab.evaluation.tasks.layout import Layout
from urlab.evaluation.tasks.task import Task, TaskError, find_task, load_task, own_tasks, parse_task, task_names

__all__ = ["Layout", "Task", "TaskError", "find_task", "load_task", "own_tasks", "parse_task", "task_names"]
