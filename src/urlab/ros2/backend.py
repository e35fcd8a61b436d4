"""What the bridge needs of a ROS graph; a backend knows nothing of messages but their bytes.

Whatever crosses this interface is serialised CDR, its 4-byte header included. Topics and services are fully qualified
ROS names (``/panda/joint_states``), types are ROS's (``sensor_msgs/msg/JointState``, ``std_srvs/srv/Trigger``).
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from urlab.ros2.qos import Qos

OnMessage = Callable[[bytes], None]
"""Takes one message, on a thread of the backend. What it raises is logged; the next message comes all the same."""

Serve = Callable[[bytes], bytes | memoryview]
"""Turns a request into its reply, on a thread of the backend; if it raises, the caller gets no reply."""


class BackendError(Exception):
    """The middleware refused; the message says what was asked of it and why it would not."""


class Publisher(Protocol):
    """Sends messages on one topic. Any thread may use it."""

    def publish(self, cdr: bytes | memoryview) -> None:
        """Send to the subscribers; nothing once closed. It never blocks for long: a stalled reader loses messages."""

    @property
    def subscribers(self) -> int:
        """How many readers are matched at this moment."""

    def close(self) -> None:
        """Withdraw the topic; once more is harmless."""


class Subscription(Protocol):
    """Something that calls back until it is closed."""

    def close(self) -> None:
        """End it; once more is harmless.

        A call that is under way is waited for, unless it is the one that closes; none comes afterwards.
        """


@runtime_checkable
class AttributedSubscription(Protocol):
    """A subscription that can tell whose message it delivers. Not every backend can."""

    def source(self) -> str | None:
        """The writer of the message that is being delivered, by its GID as graph tools print it; None if it has gone.

        Only the function that is called back may ask, during the call.
        """


class Backend(Protocol):
    """One node in a ROS graph. Any thread may use it."""

    @property
    def name(self) -> str:
        """``dds`` or ``rclpy``."""

    def publisher(self, topic: str, type_name: str, qos: Qos) -> Publisher:
        """Offer a topic."""

    def subscription(self, topic: str, type_name: str, qos: Qos, on_message: OnMessage) -> Subscription:
        """Subscribe to a topic."""

    def service(self, name: str, type_name: str, serve: Serve) -> Subscription:
        """Serve requests, one after the other; they never delay messages. `BackendError` where it cannot."""

    def close(self) -> None:
        """End everything, the node included; no thread is left. Never from a callback; once more is harmless."""
