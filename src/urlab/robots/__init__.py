"""The robots, props and levels that ship with the server.

A model is an MJCF file under ``models/<name>/``, optionally with a ``<name>.urlab.toml`` beside it
that says how the model is driven. A level is a TOML file under ``levels/``.
"""

from pathlib import Path

__all__ = ["level_names", "level_path", "model_names", "model_path"]

_HERE = Path(__file__).resolve().parent
_MODELS = _HERE / "models"
_LEVELS = _HERE / "levels"


def model_names() -> tuple[str, ...]:
    """Return the names of all shipped models, sorted."""
    return tuple(sorted(path.stem for path in _MODELS.glob("*/*.xml") if path.stem == path.parent.name))


def model_path(name: str) -> Path:
    """Return the MJCF file of the shipped model `name`."""
    return _lookup("model", name, model_names(), _MODELS / name / f"{name}.xml")


def level_names() -> tuple[str, ...]:
    """Return the names of all shipped levels, sorted."""
    return tuple(sorted(path.stem for path in _LEVELS.glob("*.toml")))


def level_path(name: str) -> Path:
    """Return the TOML file of the shipped level `name`."""
    return _lookup("level", name, level_names(), _LEVELS / f"{name}.toml")


def _lookup(kind: str, name: str, known: tuple[str, ...], path: Path) -> Path:
    if name not in known:
        raise ValueError(f"no shipped {kind} is called {name!r}; there are: {', '.join(known)}")
    return path
