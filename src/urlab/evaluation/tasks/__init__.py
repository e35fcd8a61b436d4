"""Tasks: which objects lie where, what the robot has to do with them, and when that is done. One TOML file each."""

from urlab.evaluation.tasks.layout import Layout
from urlab.evaluation.tasks.task import Task, TaskError, find_task, load_task, own_tasks, parse_task, task_names

__all__ = ["Layout", "Task", "TaskError", "find_task", "load_task", "own_tasks", "parse_task", "task_names"]
