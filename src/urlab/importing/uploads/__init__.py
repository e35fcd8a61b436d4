"""Files that clients send, to be imported: one folder of the project each.

Bytes in, the path of a model out. `upload_store` puts them in place; `archive` judges zip files, and unpacks them;
`found_files` lets models in them find their files as MuJoCo does.
"""

from urlab.importing.uploads.upload_store import Upload, store_upload

__all__ = ["Upload", "store_upload"]
