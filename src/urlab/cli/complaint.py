"""What a user sees of an error: one line and advice; the traceback only with ``--log-level debug``."""

import logging
import sys
import traceback

from rich.text import Text

from urlab.cli.console import stderr
from urlab.errors import UrlabError

FAILED, WRONG_USE = 1, 2
DOCTOR_HINT = "`urlab doctor` checks the installation; with --log-level debug you get the details"


class CommandError(Exception):
    """A command cannot do what it was asked; the message says why and what to do, ``code`` is the exit code."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def complain(failed: Exception) -> int:
    """Tell the user; returns the exit code."""
    if logging.getLogger("urlab").isEnabledFor(logging.DEBUG):
        traceback.print_exception(failed, file=sys.stderr)
    code, message = _judge(failed)
    stderr().print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)
    return code


def _judge(failed: Exception) -> tuple[int, str]:
    if isinstance(failed, UrlabError):
        return WRONG_USE, failed.message
    if isinstance(failed, CommandError):
        return failed.code, str(failed)
    if _comes_from_a_server(failed):
        return FAILED, str(getattr(failed, "message", failed))
    return FAILED, f"{type(failed).__name__}: {failed}. {DOCTOR_HINT}."


def _comes_from_a_server(failed: Exception) -> bool:
    """Without importing the client, and MuJoCo with it: if nobody has, the error is not the client's."""
    errors = sys.modules.get("urlab_client.errors")
    return errors is not None and isinstance(failed, errors.URLabRPCError)
