"""Videos of failures: small ones inside the page, the others beside it."""

import base64
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.report.markup import Markup, join, tag

MAX_EMBEDDED_BYTES = 400_000
MAX_EMBEDDED_IN_ALL_BYTES = 12_000_000
MAX_SHOWN = 24
_NOTE = "Small films are in this page; the others, and what other cameras saw, are links into the run's folder."
_OVERVIEWS = ("obs_camera", "top_camera", "obs_camera_2")


@dataclass
class VideoShelf:
    """Puts videos into a page that will lie in ``folder``, and counts what it has embedded."""

    folder: Path
    embedded_bytes: int = 0

    def gallery(self, failures: Sequence[tuple[str, EpisodeResult]]) -> Markup:
        """A figure for each of the first failures that were filmed; each failure comes with what to call its run."""
        filmed = [(run, one) for run, one in failures if one.videos]
        figures = [self._figure(run, one) for run, one in filmed[:MAX_SHOWN]]
        left_out = len(filmed) - len(figures)
        more = tag("p", f"{left_out} more are in the run's folder.", cls="note") if left_out > 0 else ""
        return join(tag("p", _NOTE, cls="note"), tag("div", *figures, cls="gallery"), more)

    def _figure(self, run: str, episode: EpisodeResult) -> Markup:
        camera = next((name for name in _OVERVIEWS if name in episode.videos), next(iter(episode.videos)))
        video = tag("video", src=self._source(episode.videos[camera]), controls=True, muted=True, playsinline=True,
                    preload="metadata")  # fmt: skip
        others = [
            join(" ", tag("a", name, href=self._link(path))) for name, path in episode.videos.items() if name != camera
        ]
        caption = tag(
            "figcaption",
            tag("b", f"{run} {episode.task} {episode.seed}".strip()),
            f"{episode.reason or 'ended'}, score {episode.score:.2f}",
            tag("small", episode.instruction) if episode.instruction else "",
            tag("small", camera, *others),
        )
        return tag("figure", video, caption)

    def _source(self, path: Path) -> str:
        size = path.stat().st_size
        if size > MAX_EMBEDDED_BYTES or self.embedded_bytes + size > MAX_EMBEDDED_IN_ALL_BYTES:
            return self._link(path)
        self.embedded_bytes += size
        return f"data:video/mp4;base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"

    def _link(self, path: Path) -> str:
        return quote(Path(os.path.relpath(path.resolve(), self.folder.resolve())).as_posix())
