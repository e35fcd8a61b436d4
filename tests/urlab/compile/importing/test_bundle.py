from urlab.compile.importing import Bundle
from urlab.scene.blueprint_record import BlueprintKind


def test_content_tells_every_difference() -> None:
    kinds = [BlueprintKind.MODEL, BlueprintKind.STATIC_MESH]
    files = [{"a": b"1", "b": b"2"}, {"a": b"12", "b": b""}, {"a": b"1"}, {"ab": b"12"}, {"a": b"2", "b": b"1"}]
    made = [Bundle("s", main, each, kind) for kind in kinds for main in ("a", "b") for each in files]
    assert len({one.content for one in made}) == len(made)
    assert Bundle("s", "a", dict(reversed(files[0].items())), kinds[0]).content == made[0].content
