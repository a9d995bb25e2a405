"""Which names a node answers to over HTTP: its own, and those that its settings add."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.app.sources import load_settings

if TYPE_CHECKING:
    from pathlib import Path


def test_the_file_names_hosts_in_a_list(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    file.write_text('[http]\nhosts = ["broker.example", "10.0.0.1", "::1"]\n', encoding="utf-8")
    assert load_settings(file=file).http.hosts == ("broker.example", "10.0.0.1", "::1")
