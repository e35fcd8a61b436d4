"""The child process that reads a large recording of another writer. Its argument is the file's suffix, its task the
file.
"""

import sys

from urlab.importing.limited_process import serve_once
from urlab.recording.files import packed, parse_text

if __name__ == "__main__":
    serve_once(lambda content: packed(parse_text("", sys.argv[1], content)))
