"""The limit of what a page may upload: its script refuses a larger file, and no more than that is ever kept.

viser itself keeps whatever is sent, so two of its methods are replaced.
"""

from typing import Any

from viser._gui_api import GuiApi

from urlab_wire.ops.scene import MAX_UPLOAD_BYTES

_MOST_PARTS = 1000
"""Of one file; a page sends half a megabyte in each."""

SCRIPT = """<script>addEventListener("change", (event) => {
  const input = event.target;
  if (input?.type !== "file") return;
  const large = [...input.files].find((one) => one.size > MOST);
  if (!large) return;
  event.stopImmediatePropagation();
  input.value = "";
  const megabytes = (bytes) => Math.round(bytes / 1e6);
  window.urlabWarn(`${large.name} has ${megabytes(large.size)} MB, and at most ${megabytes(MOST)} MB can be imported ` +
    "here. Copy it to the server's machine, and import it with Python: client.scene.import_xml(path).");
}, true);</script>""".replace("MOST", str(MAX_UPLOAD_BYTES))


def _limit_uploads() -> None:
    """From now on pages of viser keep one upload each, of at most that size; what is more is not kept."""
    start, part = GuiApi._handle_file_transfer_start, GuiApi._handle_file_transfer_part

    def limited_start(self: Any, client_id: Any, message: Any) -> None:
        self._drop_uploads_from_client(client_id)
        if message.size_bytes <= MAX_UPLOAD_BYTES and message.part_count <= _MOST_PARTS:
            start(self, client_id, message)

    def limited_part(self: Any, client_id: Any, message: Any) -> None:
        state = self._current_file_upload_states.get(message.transfer_uuid)
        if state is not None and state["transferred_bytes"] + len(message.content) > state["total_bytes"]:
            del self._current_file_upload_states[message.transfer_uuid]
        part(self, client_id, message)

    GuiApi._handle_file_transfer_start = limited_start  # type: ignore[method-assign]
    GuiApi._handle_file_transfer_part = limited_part  # type: ignore[method-assign]


_limit_uploads()
