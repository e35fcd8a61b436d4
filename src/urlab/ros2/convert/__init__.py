"""From what a client knows to ROS messages, and from commands to setpoints. Pure: nothing here sends or waits.

`robots` makes joint states and odometry, `sensors`, `cameras` and `transforms` what they are named after, `urdf` robot
descriptions; `commands` reads what ROS asks of a robot.

Most converters are made once per scene from the client's handles and a `urlab.ros2.frames.SceneFrames`, have a
``type_name``, and turn each ``state/full`` into a message with ``convert(state)``. They never change, so any thread may
use them; a state that belongs to another scene raises `SceneChanged` (of ``robots``). Messages share the parts that
never change: serialise them, do not write into them.
"""
