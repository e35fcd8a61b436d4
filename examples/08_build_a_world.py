"""Build a world from Python: import a model, place it, light it, save it, play it, change it, play it again."""

import tempfile
from pathlib import Path

import urlab
from urlab_client import URLabAsset

CRATE = """
<mujoco model="crate">
  <worldbody><body name="box"><freejoint/><geom type="box" size=".05 .05 .05" mass=".3" rgba=".8 .5 .2 1"/></body>
  </worldbody>
</mujoco>
"""

with tempfile.TemporaryDirectory() as folder:
    model = Path(folder) / "crate.xml"
    model.write_text(CRATE)
    with urlab.launch("floor", project=Path(folder) / "project") as client:
        # one call for a whole scene; calling it again changes nothing
        scene = [URLabAsset(f"crate_{i}", str(model), location=(0.3 * i, 0, 0.5 + 0.2 * i)) for i in range(3)]
        client.scene.apply_scene("stack", scene)
        client.scene.spawn_actor("floor", "ground")
        client.scene.spawn_light("spot", "lamp", location=(0, 0, 3), rotation_euler=(0, 90, 0))
        client.scene.save_level()
        print("level:", client.scene.current_level())
        for actor in client.outliner.list_actors():
            print(f"  {actor.actor_id:10} {actor.actor_class:18} at {actor.location}")

        client.sim.start("stack")
        client.runtime.set_mode("direct")
        client.step(n_steps=500)
        print("fallen:", {name: round(float(one.root_pos_w[2]), 3) for name, one in client.entities.items()})

        # an edit is for the next play
        moved = client.scene.spawn_actor("crate", "crate_0", location=(0, 0, 2.0))
        print("needs a restart:", moved.requires_pie_restart)
        client.sim.stop()
        client.sim.start()
        print("again:", {name: round(float(one.root_pos_w[2]), 3) for name, one in client.entities.items()})

        # what it looks like
        client.viewport.set_camera((-1.5, -1.5, 1.2), rotation_euler=(0, 25, 45))
        client.debug.draw_arrow((0, 0, 1), (0, 0, 0.3), (1, 0, 0), ttl=-1)
        png = client.viewport.screenshot(Path(folder) / "stack.png")
        print("picture:", len(png), "bytes")
