import sys
from pathlib import Path

import pytest

from urlab.compile.importing.exchange import exchange_at_once, exchange_in_turn, put_in_place


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    made = tmp_path / "new", tmp_path / "old"
    for folder in made:
        folder.mkdir()
        (folder / folder.name).touch()
    return made


def is_swapped(new: Path, old: Path) -> bool:
    return (old / "new").exists() and (new / "old").exists() and len(list(old.parent.iterdir())) == 2


def test_a_folder_takes_a_free_place(folders: tuple[Path, Path], tmp_path: Path) -> None:
    put_in_place(folders[0], tmp_path / "free")
    assert (tmp_path / "free" / "new").exists()
    assert not folders[0].exists()


@pytest.mark.parametrize("exchange", [put_in_place, exchange_in_turn])
def test_two_folders_swap_names(folders: tuple[Path, Path], exchange) -> None:
    exchange(*folders)
    assert is_swapped(*folders)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can")
def test_linux_swaps_at_once(folders: tuple[Path, Path]) -> None:
    if not exchange_at_once(*folders):
        pytest.skip("this file system cannot")
    assert is_swapped(*folders)


def test_what_cannot_be_replaced_stays(folders: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(OSError, match="missing"):
        exchange_in_turn(tmp_path / "missing", folders[1])
    assert (folders[1] / "old").exists()
