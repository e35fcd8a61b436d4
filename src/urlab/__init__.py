"""The headless simulation server."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from urlab.config import VERSION

if TYPE_CHECKING:
    from urlab_client import URLabClient

__version__ = VERSION


def launch(target: str | Path | Sequence[str | Path] | None = None, **options: Any) -> "URLabClient":
    """Start a server inside this process and return a connected client; see `urlab.app.launch`."""
    from urlab.app import launch as launch_app

    return launch_app(target, **options)


__all__ = ["__version__", "launch"]
