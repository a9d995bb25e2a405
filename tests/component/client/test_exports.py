"""What `import angarium` gives, and what it costs."""

from __future__ import annotations

import subprocess
import sys


def test_importing_angarium_loads_nothing_else() -> None:
    code = "import sys, angarium; print([name for name in sys.modules if 'angarium.' in name])"
    command = [sys.executable, "-c", code]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
