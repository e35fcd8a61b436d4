"""What a server refuses, and that there is none, for people."""

from collections.abc import Iterator
from contextlib import contextmanager

from urlab.cli.complaint import FAILED, WRONG_USE, CommandError


@contextmanager
def told_plainly(url: str) -> Iterator[None]:
    """Errors of the client in the block become CommandError with what to do."""
    from urlab.evaluation.runs.client import (
        BadAddress,
        BadRequest,
        EvalClientError,
        ForeignServer,
        ServerUnreachable,
        TokenRefused,
    )

    try:
        yield
    except (BadAddress, ForeignServer) as wrong:
        raise CommandError(wrong.message, WRONG_USE if isinstance(wrong, BadAddress) else FAILED) from wrong
    except ServerUnreachable as away:
        raise CommandError(f"{away.message}. Is there a server at {url}? `urlab eval serve` starts one.") from away
    except TokenRefused as refused:
        raise CommandError(f"the server at {url} wants a token: give it with --token") from refused
    except EvalClientError as refused:
        code = WRONG_USE if isinstance(refused, BadRequest) else FAILED
        raise CommandError(f"the server at {url} refused: {refused.message}", code) from refused
