"""What `import angarium` gives, and what it costs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import angarium


def test_every_exported_name_can_be_imported() -> None:
    for name in angarium.__all__:
        assert getattr(angarium, name) is not None
    assert set(dir(angarium)) == set(angarium.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Courier'"):
        angarium.Courier  # type: ignore[attr-defined]  # noqa: B018


def test_type_checkers_see_the_same_names() -> None:
    assert angarium.__file__ is not None
    stub = Path(angarium.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    typed = set(re.findall(r"import \w+ as (\w+)", stub)) | {"__version__"}
    assert typed == set(angarium.__all__)
