"""A model file becomes an import that needs nothing but its own folder."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from urlab.compile.importing.assets import safe_file_name
from urlab.compile.importing.bundle import Bundle
from urlab.compile.importing.model_rewriter import ModelRewriter
from urlab.compile.importing.sources import Sources
from urlab.errors import ImportFailed
from urlab.scene.blueprint_record import BlueprintKind
from urlab.scene.sidecar import SIDECAR_SUFFIX, sidecar_path


@dataclass(frozen=True, slots=True)
class Original:
    """The model that an import must be equal to.

    ``files`` says what its URIs mean, where MuJoCo does not know. ``missing`` has files that are not there, each with
    who names it: MuJoCo will complain, but not say where.
    """

    path: Path
    files: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


def model_bundle(source: Path, sources: Sources) -> tuple[Bundle, Original]:
    """The import of an MJCF or URDF file, and what to compare it with.

    ImportFailed when a file that it needs may not or cannot be read; NotXml when a text is none. What only MuJoCo can
    judge, a missing mesh for one, is left for it to judge.
    """
    text = sources.read(str(source), "this import")
    if text is None:
        raise ImportFailed(f"there is no file {source}")
    rewriter = ModelRewriter(str(source), text, sources)
    stem = safe_file_name(source.stem)
    main = f"{stem}.urdf" if rewriter.is_urdf else f"{stem}.xml"
    files = {main: rewriter.text(), **rewriter.assets.files, **_sidecar(source, stem, sources)}
    bundle = Bundle(stem=source.stem, main=main, files=files, kind=BlueprintKind.MODEL)
    return bundle, Original(source, rewriter.urdf_files if rewriter.has_packages else {}, rewriter.missing)


def _sidecar(source: Path, stem: str, sources: Sources) -> dict[str, bytes]:
    content = sources.read(str(sidecar_path(source)), str(source))
    return {} if content is None else {f"{stem}{SIDECAR_SUFFIX}": content}
