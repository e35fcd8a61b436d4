"""Policies by name, and the one that knows nothing."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from urlab.evaluation.embodiments import EMBODIMENTS
from urlab.evaluation.policies import Policy, PolicyError, PolicyNotFound, find_policy
from urlab.evaluation.policies.base import embodiment_of, episode_of, optional_method
from urlab.evaluation.policies.random_policy import MAX_DELTA_RAD, RandomPolicy

OWN = """
class Still:
    needs_cameras = False
    def __init__(self, checkpoint="none"):
        self.checkpoint = checkpoint
    def reset(self, observation): pass
    def act(self, observation):
        return {"control_type": "joint_position", "action": [0.0] * 9}
    def close(self): pass

class Least:
    def act(self, observation):
        return {"control_type": "joint_position", "action": [0.0] * 9}

class Half:
    def reset(self, observation): pass

class Broken:
    def __init__(self):
        raise OSError("no checkpoint here")

def factory():
    return Still("from a function")
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module in the current folder."""
    name = f"policies_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["/nowhere"])
    return name


def first_observation(embodiment: str, episode: str = "urlab/run/task/003") -> dict[str, Any]:
    return {"robot_id": EMBODIMENTS[embodiment].robot_id, "episode_id": episode}


@pytest.mark.parametrize("name", sorted(EMBODIMENTS))
def test_random_actions_fit_the_robot_and_stay_small(name: str):
    embodiment, policy = EMBODIMENTS[name], RandomPolicy()
    observation = first_observation(name)
    policy.reset(observation)
    actions = np.array([policy.act(observation)["action"] for _ in range(200)])
    assert actions.shape == (200, embodiment.action_length)
    begin = 0
    for arm in embodiment.arms:
        middle = begin + len(arm.joints)
        assert np.abs(actions[:, begin:middle]).max() <= MAX_DELTA_RAD
        assert actions[:, begin:middle].min() < -0.9 * MAX_DELTA_RAD
        end = middle + len(arm.gripper.joints)
        wide, shut = np.array(arm.gripper.open), np.array(arm.gripper.closed)
        part = (actions[:, middle:end] - wide) / (shut - wide)
        assert part == pytest.approx(np.repeat(part[:, :1], end - middle, axis=1))
        assert 0 <= part.min() < 0.1
        assert 0.9 < part.max() <= 1
        begin = end


def test_random_actions_repeat_for_an_episode_and_differ_between_episodes():
    def actions(episode: str) -> list[Any]:
        policy = find_policy("random").make()
        policy.reset(first_observation("franka_panda", episode))
        return [policy.act({}) for _ in range(3)]

    same = actions("urlab/one/task/003")
    assert actions("urlab/another run/task/003") == same
    assert actions("urlab/one/task/004") != same
    assert actions("urlab/one/other/003") != same


def test_the_random_policy_sees_nothing_and_many_may_run():
    source = find_policy("random")
    assert (source.needs_cameras, source.needs_privileged, source.shared_nothing) == (False, False, True)
    assert isinstance(source.make(), Policy)


def test_a_class_of_the_current_folder_is_found(own: str):
    source = find_policy(f"{own}:Still", {"checkpoint": "best.pt"})
    assert source.make().checkpoint == "best.pt"  # type: ignore[attr-defined]
    assert (source.needs_cameras, source.needs_privileged, source.shared_nothing) == (False, False, False)


def test_a_class_of_a_file_is_found(own: str, tmp_path: Path):
    source = find_policy(f"{tmp_path / own}.py:Still")
    assert source.make().checkpoint == "none"  # type: ignore[attr-defined]


def test_a_function_may_make_the_policy(own: str):
    source = find_policy(f"{own}:factory")
    assert source.needs_cameras is True
    assert source.make().checkpoint == "from a function"  # type: ignore[attr-defined]


def test_a_policy_needs_act_alone(own: str):
    policy = find_policy(f"{own}:Least").make()
    assert isinstance(policy, Policy)
    assert optional_method(policy, "reset")({}) is None
    assert optional_method(policy, "close")() is None


@pytest.mark.parametrize(
    ("stated", "cameras"),
    [
        ("None", None),
        ("['obs_camera', 'realsense']", {"obs_camera": None, "realsense": None}),
        ("{'obs_camera': (224, 200), 'realsense': None}", {"obs_camera": (224, 200), "realsense": None}),
    ],
)
def test_a_class_says_through_which_cameras_it_looks(tmp_path: Path, stated: str, cameras: Any):
    file = tmp_path / f"looks_{abs(hash(stated))}.py"
    file.write_text(f"class Looks:\n    cameras = {stated}\n    depth = False\n    def act(self, seen): ...\n")
    source = find_policy(f"{file}:Looks")
    assert (source.cameras, source.depth) == (cameras, False)


@pytest.mark.parametrize("stated", ["'obs_camera'", "{'obs_camera': 224}", "[]", "{'obs_camera': (224, 'x')}"])
def test_cameras_that_cannot_be_meant_are_refused(tmp_path: Path, stated: str):
    file = tmp_path / f"odd_{abs(hash(stated))}.py"
    file.write_text(f"class Odd:\n    cameras = {stated}\n    def act(self, seen): ...\n")
    with pytest.raises(PolicyNotFound, match="write a list of names, or names with their sizes"):
        find_policy(f"{file}:Odd")


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("banana", "there is no policy 'banana'; there are: .*random.*, or module:Class"),
        ("Oracle", r"did you mean 'oracle'\?"),
        ("own.py", "for this file: own.py:Class"),
        ("http://127.0.0.1:8000", "asked over a websocket: ws://127.0.0.1:8000"),
        ("nowhere_at_all:Policy", "there is no module 'nowhere_at_all' in /.*file.py:Class"),
        ("nowhere/at/all.py:Policy", "there is no file nowhere/at/all.py"),
        ("{own}:Missing", "has no class 'Missing'; it has: Broken, Half, Least, Still"),
        ("{own}:not a name", "write module:Class or file.py:Class"),
        ("{own}:Half", r"lacks act\(\)"),
        ("{own}:Broken", r"cannot be made: OSError: no checkpoint here \(.*, line 20, in __init__\)"),
    ],
)
def test_a_policy_that_is_not_one_is_told_with_what_there_is(own: str, word: str, says: str):
    with pytest.raises(PolicyNotFound, match=says):
        find_policy(word.format(own=own)).make()


def test_arguments_that_do_not_fit_are_told(own: str):
    with pytest.raises(PolicyNotFound, match=r"checkpiont='x'.*unexpected keyword argument 'checkpiont'"):
        find_policy(f"{own}:Still", {"checkpiont": "x"}).make()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import no_such_package_here", "cannot be imported: ModuleNotFoundError: .*no_such_package_here.*line 1"),
        ("x = 1\nraise ValueError('not today')", r"cannot be imported: ValueError: not today \(.*line 2"),
        ("raise SystemExit('no such option')", r"cannot be imported: SystemExit: no such option \(.*line 1"),
        ("class Policy\n", r"cannot be imported: SyntaxError: .*, line 1\)$"),
    ],
)
def test_a_module_that_breaks_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, says: str):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["/nowhere"])
    name = f"breaks_{tmp_path.name}"
    Path(f"{name}.py").write_text(text)
    for word in (f"{name}:Policy", f"{name}.py:Policy"):
        with pytest.raises(PolicyNotFound, match=says):
            find_policy(word)


def test_an_unknown_robot_is_told_with_those_that_are_known():
    with pytest.raises(PolicyError, match=r"'manip/lift2/R5a'.*known are: .*manip/franka/panda_hand"):
        embodiment_of({"robot_id": "manip/lift2/R5a"})


def test_an_episode_without_a_seed_is_refused():
    assert episode_of({"episode_id": "urlab/2026/run/task/012"}) == ("task", 12)
    with pytest.raises(PolicyError, match="benchmark/run/task/seed"):
        episode_of({"episode_id": "urlab"})
