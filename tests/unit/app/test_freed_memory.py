"""The C library's patience with freed memory, and what a start leaves behind."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import TYPE_CHECKING

from angarium.app.memory import (
    KEPT_BYTES,
    MAPPED_BYTES,
    give_back_freed_memory,
    keep_freed_memory,
)

if TYPE_CHECKING:
    import pytest


def test_both_bounds_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def mallopt(name: int, value: int) -> int:
        asked.append((name, value))
        return 1

    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=mallopt))
    assert keep_freed_memory()
    assert asked == [(-3, MAPPED_BYTES), (-1, KEPT_BYTES)]


def test_a_library_without_such_bounds_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    assert not keep_freed_memory()


def test_what_is_free_is_given_back_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(malloc_trim=kept.append))
    assert give_back_freed_memory()
    assert kept == [0]


def test_a_library_that_keeps_what_is_free_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    assert not give_back_freed_memory()
