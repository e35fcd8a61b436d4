import pytest

from urlab.importing.bundle import AssetFiles, Bundle, safe_file_name
from urlab.scene.blueprint_record import BlueprintKind
from urlab.scene.names import file_name_problem


def test_content_tells_every_difference() -> None:
    kinds = [BlueprintKind.MODEL, BlueprintKind.STATIC_MESH]
    files = [{"a": b"1", "b": b"2"}, {"a": b"12", "b": b""}, {"a": b"1"}, {"ab": b"12"}, {"a": b"2", "b": b"1"}]
    made = [Bundle("s", main, each, kind) for kind in kinds for main in ("a", "b") for each in files]
    assert len({one.content for one in made}) == len(made)
    assert Bundle("s", "a", dict(reversed(files[0].items())), kinds[0]).content == made[0].content


def test_a_file_keeps_its_name() -> None:
    assert AssetFiles().take("/a/arm.stl", "arm.stl") == "assets/arm.stl"


def test_of_two_files_with_one_name_the_second_gets_a_folder() -> None:
    assets = AssetFiles()
    names = [assets.take(path, path) for path in ("/a/arm.stl", "/b/arm.stl", "/c/ARM.stl")]
    assert names == ["assets/arm.stl", "assets/2/arm.stl", "assets/3/ARM.stl"]


def test_a_file_under_the_same_reference_is_known() -> None:
    assets = AssetFiles()
    name = assets.take("/a/arm.stl", "arm.stl")
    assert assets.known("/a/arm.stl", "arm.stl") == name
    assert assets.known("/a/arm.stl", "./arm.stl") is None


@pytest.mark.parametrize(
    "odd", ["a:b.stl", ".hidden", "con.png", "x" * 300 + ".stl", "a\nb", "\udce9.stl", "...", "dot."]
)
def test_an_odd_name_becomes_one_that_every_file_system_takes(odd: str) -> None:
    assert file_name_problem(odd) is not None
    assert file_name_problem(safe_file_name(odd)) is None
