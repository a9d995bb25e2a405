"""Write the golden files of a new format version: `python -m tests.golden.write`.

Files that are there are never touched: they are the promise that later versions read what earlier
ones wrote.
"""

from __future__ import annotations

from tests.golden.batch import files as batch_files

if __name__ == "__main__":
    for written in batch_files.write() or ["nothing: every golden file is there"]:
        print(f"wrote {written}")
