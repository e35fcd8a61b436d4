import numpy as np
import pytest

from urlab.errors import BadValue
from urlab.export.clip import MAX_SAMPLES, frame_range


def test_a_state_has_the_recorded_joints_and_of_the_rest_what_the_scene_has(make_clip):
    state = make_clip([0.5, 1.0], [3.0, 4.0]).state(1)
    assert (state.frame_id, state.sim_time) == (2, 1.0)
    assert (state.qpos.tolist(), state.qvel.tolist()) == ([4.0, 8.0], [2.0, 0.0])
    assert (state.mocap_pos.tolist(), state.mocap_quat.tolist()) == ([[0, 0, 0]], [[1, 0, 0, 0]])


def test_states_do_not_share_memory(make_clip):
    clip = make_clip([0.0, 1.0], [3.0, 4.0])
    first = clip.state(0)
    clip.state(1)
    assert first.qpos.tolist() == [3.0, 8.0]


def test_samples_are_at_a_steady_rate_of_simulated_time(make_clip):
    clip = make_clip(np.arange(501) * 0.002)
    assert clip.sampled(10).tolist() == [50 * sample for sample in range(11)]
    assert clip.sampled(500).tolist() == list(range(501))
    assert clip.sampled(30).tolist() == [int(sample / 30 / 0.002 + 1e-6) for sample in range(31)]


def test_times_that_are_sums_of_timesteps_lose_no_frame(make_clip):
    clip = make_clip(np.cumsum(np.full(1000, 0.01)))
    assert clip.sampled(100).tolist() == list(range(1000))


def test_slow_frames_are_shown_for_as_long_as_they_last(make_clip):
    assert make_clip([0.0, 1.0, 1.5]).sampled(4).tolist() == [0, 0, 0, 0, 1, 1, 2]


def test_where_the_simulation_was_reset_the_film_goes_on(make_clip):
    assert make_clip([5.0, 6.0, 0.0, 1.0]).sampled(1).tolist() == [0, 2, 3]


def test_one_frame_is_one_sample(make_clip):
    assert make_clip([3.0]).sampled(30).tolist() == [0]
    assert make_clip([1.0, 2.0, 3.0], first=1, last=1).sampled(240).tolist() == [1]


def test_a_part_is_sampled_from_its_first_frame_on(make_clip):
    assert make_clip([0.0, 1.0, 2.0, 3.0, 4.0], first=1, last=3).sampled(1).tolist() == [1, 2, 3]


@pytest.mark.parametrize("end", [1e9, 1e300])
def test_more_samples_than_a_film_may_have_are_refused(make_clip, end):
    with pytest.raises(BadValue, match=f"more than {MAX_SAMPLES} pictures; take a part of it"):
        make_clip([0.0, end]).sampled(30)


def test_a_range_is_told_by_timestamps(make_clip):
    playable = make_clip([0.5, 1.0, 1.5, 2.0]).playable
    assert frame_range(playable, None, None) == (0, 3)
    assert frame_range(playable, 1.0, 1.9) == (1, 2)
    assert frame_range(playable, 1.0, 1.0) == (1, 1)


@pytest.mark.parametrize(("from_s", "to_s"), [(2.0, 1.0), (0.1, None), (None, 0.1), (float("nan"), None)])
def test_a_range_without_frames_is_refused(make_clip, from_s, to_s):
    with pytest.raises(BadValue):
        frame_range(make_clip([0.5, 1.0, 1.5, 2.0]).playable, from_s, to_s)
