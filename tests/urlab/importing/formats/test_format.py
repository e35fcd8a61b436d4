from pathlib import Path

import pytest

from urlab.importing.bundle import Bundle
from urlab.importing.formats import ImportFormat, format_of, suffixes
from urlab.importing.sources import SourceFiles


def test_every_suffix_is_in_lower_case_and_has_a_format() -> None:
    assert suffixes()
    assert [one for one in suffixes() if not one.startswith(".") or one != one.lower() or format_of(one) is None] == []


def test_no_two_formats_share_a_suffix() -> None:
    with pytest.raises(TypeError, match=r"Other reads \.stl, but MeshFormat does already"):

        class Other(ImportFormat):
            suffixes = (".off2", ".stl")

            def read(self, source: Path, sources: SourceFiles) -> tuple[Bundle, None]:
                raise NotImplementedError

    assert format_of(".off2") is None, "and nothing of it is registered"
