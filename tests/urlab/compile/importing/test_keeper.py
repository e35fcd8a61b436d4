import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from urlab.compile.importing import Bundle, keep
from urlab.errors import ImportFailed
from urlab.scene.blueprint_record import BlueprintKind
from urlab.scene.project import Project


def bundle(radius: int = 1, stem: str = "ball", **files: bytes) -> Bundle:
    text = f'<mujoco><worldbody><geom size="{radius}"/></worldbody></mujoco>'
    return Bundle(stem, "ball.xml", {"ball.xml": text.encode(), **files}, BlueprintKind.MODEL)


def test_a_model_that_mujoco_refuses_leaves_nothing(project: Project) -> None:
    broken = Bundle("ball", "ball.xml", {"ball.xml": b"<mujoco><nonsense/></mujoco>"}, BlueprintKind.HEIGHTFIELD)
    with pytest.raises(ImportFailed, match="unrecognized element"):
        keep(broken, "an array", project)
    assert project.records() == []


def test_threads_that_import_the_same_thing_both_succeed(project: Project) -> None:
    barrier = threading.Barrier(3)

    def run(_: int) -> tuple[object, bool]:
        barrier.wait()
        return keep(bundle(), "/there", project)

    with ThreadPoolExecutor() as pool:
        kept = list(pool.map(run, range(3)))
    assert [record for record, _ in kept] == [project.imported("ball")] * 3
    assert sorted(is_new for _, is_new in kept) == [False, False, True]
