"""Which colour stands for what in the segmentation modes."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from urlab.cameras.ownership import Owner, body_owners, element_owners
from urlab.cameras.palette import BLACK, Color, distinct_colors
from urlab.compile.compiled_scene import CompiledScene
from urlab_wire.enums import CameraMode

BACKGROUND = "background"


@dataclass(frozen=True, slots=True)
class Label:
    """One row of the table: a class or a thing. Id 0 is the background, which is black."""

    id: int
    color: Color
    name: str


@dataclass(frozen=True)
class Segmentation:
    """The labels of a scene in the order of their ids, and whom each element belongs to, by mjtObj and id."""

    semantic: tuple[Label, ...]
    instance: tuple[Label, ...]
    owners: Mapping[int, list[Owner]]

    def labels(self, mode: CameraMode) -> dict[int, list[Label]]:
        """The label of each element in the semantic or the instance mode, by mjtObj and id."""
        is_semantic = mode is CameraMode.SEMANTIC
        rows = {label.name: label for label in (self.semantic if is_semantic else self.instance)[1:]}
        return {
            kind: [rows[owner.semantic if is_semantic else owner.instance] for owner in owners]
            for kind, owners in self.owners.items()
        }


def segment(scene: CompiledScene) -> Segmentation:
    """The labels of a scene: the same ones for the same scene, on every machine."""
    bodies = body_owners(scene)
    owners = element_owners(scene, bodies)
    everybody = [*bodies[1:], *(owner for kind in owners.values() for owner in kind)]
    semantic = _labels(owner.semantic for owner in everybody)
    return Segmentation(semantic, _labels(owner.instance for owner in everybody), owners)


def segmentation_table(scene: CompiledScene) -> dict[str, list[dict[str, Any]]]:
    """``{"semantic": [{"id", "color": [r, g, b], "name"}], "instance": [...]}``; the first row is the background.

    Within a mode all colours differ, so that a pixel's colour tells its id.
    """
    found = segment(scene)
    return {"semantic": _rows(found.semantic), "instance": _rows(found.instance)}


def _labels(names: Iterable[str]) -> tuple[Label, ...]:
    distinct = list(dict.fromkeys(names))
    colors = distinct_colors(len(distinct))
    things = (Label(number, color, name) for number, (color, name) in enumerate(zip(colors, distinct, strict=True), 1))
    return (Label(0, BLACK, BACKGROUND), *things)


def _rows(labels: Iterable[Label]) -> list[dict[str, Any]]:
    return [{**asdict(label), "color": list(label.color)} for label in labels]
