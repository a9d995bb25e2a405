"""Write the golden files of a new format version: `make golden`.

Files that are there are never touched: they are the promise that later versions read what earlier
ones wrote.
"""

from __future__ import annotations

from tests.golden.batch import files as batch_files
from tests.golden.data import files as data_files

if __name__ == "__main__":
    written = [*batch_files.write(), *data_files.write()]
    for name in written or ["nothing: every golden file is there"]:
        print(f"wrote {name}")
