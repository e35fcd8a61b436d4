"""What a person does on the page while a level plays, in a real browser: time, states, gains, plots, forces, films."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import urlab
from urlab_client import URLabClient

pytestmark = pytest.mark.page

PENDULUM = """<mujoco model="pendulum"><compiler angle="radian"/><worldbody><body name="rod" pos="0 0 1.2">
    <joint name="hinge" axis="0 1 0" range="-3 3" damping="0.3"/>
    <geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.6" mass="0.5"/></body>
    <camera name="left" pos="0 2.5 1" xyaxes="-1 0 0 0 0 1" resolution="64 48"/>
    <camera name="right" pos="0 -2.5 1" xyaxes="1 0 0 0 0 1" resolution="64 48"/></worldbody>
    <actuator><motor name="motor" joint="hinge"/></actuator>
    <sensor><jointpos name="angle" joint="hinge"/></sensor>
    <keyframe><key name="raised" qpos="1.5"/></keyframe></mujoco>"""
GAINS = '[controller]\nkind = "pd"\n[controller.params]\nkp = { motor = 3.0 }\nkv = { motor = 0.1 }\n'
WEIGHT = """<mujoco model="weight"><worldbody><body name="weight"><freejoint/>
    <geom type="box" size="0.1 0.1 0.1" mass="1"/></body></worldbody></mujoco>"""
PLOT = "document.querySelector('.u-over')"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, project: Path) -> Iterator[URLabClient]:
    """The driver of a level that plays: a pendulum with a controller, and a weight that falls past it."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "pendulum.xml").write_text(PENDULUM)
    (folder / "pendulum.urlab.toml").write_text(GAINS)
    (folder / "weight.xml").write_text(WEIGHT)
    targets = [f"{folder}/pendulum.xml", f"{folder}/weight.xml@0,2,0"]
    with urlab.launch(
        targets, step_mode="live", web=True, web_port=0, project=project, sim_options={"gravity": [0, 0, 0]}
    ) as opened:
        yield opened


@pytest.fixture(autouse=True)
def running(client: URLabClient) -> None:
    """A test begins with a level that plays from its start."""
    client.runtime.set_mode("live")
    client.runtime.set_sim_speed(100.0)
    client.reset()
    client.runtime.set_paused(False)


def angle(client: URLabClient) -> float:
    client.step(0)
    return float(client.articulations["pendulum"].get_qpos()["hinge"])


def height_of_weight(client: URLabClient) -> float:
    client.step(0)
    return float(client.entities["weight"].root_pos_w[2])


def test_speed_and_mode_are_set_on_the_page_which_says_how_quick_the_client_steps(client: URLabClient, page: Any):
    page.open_tab("Play")
    page.slide("Speed %", 0.5)
    page.until(lambda: 40 <= (client.sim.status().speed_percent or 0) <= 65)
    page.until(lambda: page.says(f"live at {client.sim.status().speed_percent:g} %"))
    page.choose("Mode", "direct")
    page.until(lambda: client.sim.status().mode == "direct")
    page.until(lambda: page.says(" 0 steps/s"))

    def steps_are_counted() -> bool:
        client.step(20)
        return not page.says(" 0 steps/s") and page.says(" steps/s")

    page.until(steps_are_counted)


def test_keyframes_and_saved_states_are_gone_back_to(client: URLabClient, page: Any):
    page.press("Pause")
    page.until(lambda: client.sim.status().paused)
    page.open_tab("Play")
    page.choose("Keyframe", "pendulum_raised")
    page.press("Reset to it")
    page.until(lambda: angle(client) == 1.5)
    page.write("Name", "raised")
    page.press("Save state")
    page.until(lambda: [one.name for one in client.runtime.list_states()] == ["raised"])
    client.reset()
    page.until(lambda: angle(client) == 0.0)
    page.press("Restore state")
    page.until(lambda: angle(client) == 1.5)


def test_gains_of_a_controller_are_changed_and_stay_what_they_are(client: URLabClient, page: Any):
    client.outliner.select_actor("pendulum", by_name=True)
    controller = client.articulations["pendulum"].controller
    assert controller is not None
    page.open_tab("Inspect")
    page.until(lambda: page.says("Gains"))
    page.open_folder("Gains")
    page.write("kp hinge", "7.5")
    page.until(lambda: controller.refresh()["kp"] == {"hinge": 7.5})
    controller.configure(kv={"hinge": 0.4})
    client.outliner.select_actor("weight", by_name=True)
    page.until(lambda: not page.says("Gains"))
    client.outliner.select_actor("pendulum", by_name=True)
    page.until(lambda: page.says("Gains"))
    page.open_folder("Gains")
    page.until(lambda: page.value("kp hinge") == "7.5")
    assert page.value("kv hinge") == "0.4", "also what Python has set meanwhile"


def test_a_sensor_is_plotted_as_it_changes(client: URLabClient, page: Any):
    client.outliner.select_actor("pendulum", by_name=True)
    page.open_tab("Inspect")
    page.until(lambda: page.tab.evaluate(f"!!{PLOT}"))
    page.tab.evaluate(f"{PLOT}.scrollIntoView({{block: 'center'}})")
    drawn = """(() => {
        const canvas = document.querySelector('.u-wrap canvas');
        const drawn = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        return [...new Uint32Array(drawn.data.buffer)].filter(one => (one & 0xffffff) === 0xb4641c).length;
    })()"""  # the line's colour, as little-endian words
    client.runtime.set_qpos("pendulum", [1.0], by_name=True)
    page.until(lambda: page.tab.evaluate(drawn) > 50)


def test_a_body_is_pushed_while_the_button_is_held(client: URLabClient, page: Any):
    client.outliner.select_actor("weight", by_name=True)
    page.open_tab("Inspect")
    page.until(lambda: page.says("Push"))
    page.open_folder("Push")
    button = "[...document.querySelectorAll('button')].find(one => one.offsetParent && one.innerText.trim() === 'Push')"
    place = page.tab.place(button)
    page.tab.mouse("mousePressed", place)
    page.until(lambda: client.viewport.read("known").held)
    page.until(lambda: height_of_weight(client) > 1.0)
    page.tab.mouse("mouseReleased", place, buttons=0)
    page.until(lambda: not client.viewport.read("known").held)
    page.tab.mouse("mousePressed", place)
    page.until(lambda: client.viewport.read("known").held)
    page.tab.end()
    page.until(lambda: not client.viewport.read("known").held)


def test_two_cameras_are_shown_at_once(page: Any):
    page.open_tab("Cameras")
    page.choose("Camera", "pendulum/left")
    page.press("Another camera")
    page.until(lambda: page.says("Camera 2"))
    page.choose("Camera", "pendulum/right", number=1)
    shown = "[...document.querySelectorAll('img')].filter(one => one.naturalWidth === 64 && one.naturalHeight === 48)"
    page.until(lambda: page.tab.evaluate(f"{shown}.length") == 2)


def test_a_replay_is_slowed_down_and_its_film_downloaded(client: URLabClient, page: Any, tmp_path: Path):
    client.recording.start()
    client.runtime.set_qpos("pendulum", [1.0], by_name=True)
    page.until(lambda: client.recording.status().frame_count > 300)
    client.recording.stop()
    client.recording.save("swing")
    client.sim.stop()
    client.sim.start()  # another model: the page lists recordings anew
    page.open_tab("Record")
    page.choose("Recording", "swing.json")
    page.press("Play", row="Replay")
    page.until(lambda: client.sim.status().replay)
    page.slide("Speed %", 0.0)
    page.until(lambda: client.sim.status().speed_percent == 5)
    page.press("Stop", row="Replay")
    page.until(lambda: client.sim.status().replay is None)
    page.tab.save_downloads_to(tmp_path)
    page.open_folder("Film")
    page.press("Make a film")
    film = page.until(lambda: list(tmp_path.glob("*.mp4")))[0]
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    assert imageio_ffmpeg.count_frames_and_secs(str(film))[0] > 5
