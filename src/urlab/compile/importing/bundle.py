"""What an import will hold, before it is written anywhere."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from urlab.scene.blueprint_record import BlueprintKind


@dataclass(frozen=True)
class Bundle:
    """An import, in memory: every file of its folder by relative name (posix, ``robot.xml``, ``assets/arm.stl``).

    ``stem`` is the wanted short name, the stem of the source file. ``main`` names the model among ``files``.
    """

    stem: str
    main: str
    files: Mapping[str, bytes]
    kind: BlueprintKind

    @cached_property
    def content(self) -> str:
        """A SHA-256 in hex over kind, main and every file, names and bytes."""
        digest = hashlib.sha256()
        for part in (self.kind.value, self.main):
            _add(digest, part.encode())
        for name in sorted(self.files):
            _add(digest, name.encode())
            _add(digest, self.files[name])
        return digest.hexdigest()


def _add(digest: "hashlib._Hash", part: bytes) -> None:
    digest.update(len(part).to_bytes(8, "little"))
    digest.update(part)
