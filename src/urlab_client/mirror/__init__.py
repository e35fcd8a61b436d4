"""The local copy of the server's model and state: ``model`` and ``data``, and how replies are brought into them.

`mirror` follows the server; `places` says where in the data the numbers of a reply go; `local_data` is what a client
has of it; `local_edits` finds edits that the server never sees.
"""

from urlab_client.mirror.local_data import LocalData
from urlab_client.mirror.mirror import Mirror, mirror_options

__all__ = ["LocalData", "Mirror", "mirror_options"]
