"""A task file that cannot be used."""

from urlab.errors import FileError


class TaskError(FileError):
    """The message has the file, the field, what is wrong and what is allowed."""


def task_error(source: str, field: str, problem: str) -> TaskError:
    """``source: field: problem``."""
    return TaskError(f"{source}: {field}: {problem}" if field else f"{source}: {problem}")
