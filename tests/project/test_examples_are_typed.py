"""Every example of the README and the guides about Python passes `mypy --strict`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FRAGMENTS = {"spark", "pipelines"}
"""Pages whose examples go on from each other, in a notebook or a shell."""


def test_every_example_passes_a_strict_type_checker(tmp_path: Path) -> None:
    for page in (ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))):
        if page.stem in FRAGMENTS:
            continue
        text = page.read_text(encoding="utf-8")
        for number, code in enumerate(re.findall(r"```python\n(.*?)```", text, re.DOTALL)):
            name = f"{page.stem.replace('-', '_')}_{number}.py"
            (tmp_path / name).write_text(code, encoding="utf-8")
    examples = sorted(map(str, tmp_path.glob("*.py")))
    assert len(examples) > 20
    # A configuration of its own: what this project allows itself is nobody else's.
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nstrict = true\n", encoding="utf-8")
    cache = ("--cache-dir", str(tmp_path / "cache"))
    command = [sys.executable, "-m", "mypy", "--config-file", str(config), *cache, *examples]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
