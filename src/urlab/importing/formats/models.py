"""Model files, MJCF and URDF: each becomes an import that needs nothing but its own folder."""

from pathlib import Path

from urlab.errors import ImportFailed
from urlab.importing.bundle import Bundle, Original, safe_file_name
from urlab.importing.check import explanation
from urlab.importing.formats.format import ImportFormat
from urlab.importing.mjcf_document import NotXml
from urlab.importing.model_rewriter import ModelRewriter
from urlab.importing.sources import SourceFiles
from urlab.scene.blueprint_record import MODEL_SUFFIXES, BlueprintKind
from urlab.scene.sidecar import SIDECAR_SUFFIX, sidecar_path


class ModelFormat(ImportFormat):
    """An MJCF or URDF file with every file that it refers to, and its sidecar."""

    suffixes = MODEL_SUFFIXES

    def read(self, source: Path, sources: SourceFiles) -> tuple[Bundle, Original]:
        """What only MuJoCo can judge, a missing mesh for one, is left for it to judge."""
        try:
            return model_bundle(source, sources)
        except NotXml as broken:
            said = explanation(Path(broken.path), sources.limits)
            raise ImportFailed(f"{broken.path}: {said}" if said else str(broken)) from broken


def model_bundle(source: Path, sources: SourceFiles) -> tuple[Bundle, Original]:
    """The import of a model file, and what to compare it with.

    ImportFailed when a file that it needs may not or cannot be read; NotXml when a text is none.
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


def _sidecar(source: Path, stem: str, sources: SourceFiles) -> dict[str, bytes]:
    content = sources.read(str(sidecar_path(source)), str(source))
    return {} if content is None else {f"{stem}{SIDECAR_SUFFIX}": content}
