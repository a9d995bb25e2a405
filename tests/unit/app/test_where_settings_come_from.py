"""Settings: which source wins, and complaints that name the place and say what to do."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from angarium.app.settings import SECTIONS, InvalidSettings, Settings
from angarium.app.sources import Given, known_settings, load_settings, variable

ROOT = Path(__file__).resolve().parents[3]


def complaint(**sources: object) -> str:
    with pytest.raises(InvalidSettings) as refused:
        load_settings(**sources)  # type: ignore[arg-type]
    return str(refused.value)


def test_without_any_source_the_defaults_hold() -> None:
    assert load_settings() == Settings()


def test_a_missing_file_is_told() -> None:
    assert "nowhere.toml: file: cannot be read: No such file" in complaint(
        file=Path("nowhere.toml")
    )


def test_a_mistyped_variable_is_refused_and_a_foreign_one_left_alone() -> None:
    said = complaint(environment={"ANGARIUM_LISTEN_WIRE_PROT": "1", "ANGARIUM_SERVERS": "x"})
    assert "did you mean ANGARIUM_LISTEN_WIRE_PORT?" in said
    assert "ANGARIUM_SERVERS" not in said


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.0.2.7", "node-1.example.org", "localhost.evil"]
)
def test_a_listener_that_others_can_reach_is_refused_without_insecure(host: str) -> None:
    flags = {("listen", "host"): Given(host, "--listen"), ("advertise", "host"): Given("a", "x")}
    said = complaint(flags=flags)
    assert said.startswith("--listen: listen.host: ")
    assert "missing for that is TLS ([tls] has no certificate), and authentication" in said
    assert "`angarium tls init`" in said
    assert "--insecure" in said
    load_settings(flags={**flags, ("listen", "insecure"): Given(True, "--insecure")})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "::1"])
def test_a_loopback_listener_needs_no_permission(host: str) -> None:
    assert load_settings(flags={("listen", "host"): Given(host, "")}).listen.host == host


def test_listening_everywhere_needs_an_address_that_others_can_dial() -> None:
    said = complaint(
        environment={"ANGARIUM_LISTEN_HOST": "0.0.0.0", "ANGARIUM_LISTEN_INSECURE": "yes"}
    )
    assert "not set: advertise.host: 0.0.0.0 means every interface" in said


def test_forming_and_joining_at_once_is_refused() -> None:
    environment = {"ANGARIUM_NODE_FORM": "true", "ANGARIUM_NODE_JOIN": "a:1"}
    assert "ANGARIUM_NODE_JOIN: node.join: a node forms a new cluster or joins one" in complaint(
        environment=environment
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ANGARIUM_LISTEN_WIRE_PORT", "65536"),
        ("ANGARIUM_LISTEN_WIRE_PORT", "-1"),
        ("ANGARIUM_LISTEN_HOST", ""),
        ("ANGARIUM_NODE_ZONE", "x" * 65),
        ("ANGARIUM_NODE_REGION", "a\nb"),
        ("ANGARIUM_NODE_DATA", ""),
        ("ANGARIUM_NODE_JOIN", "nobody"),
        ("ANGARIUM_NODE_JOIN", "a:99999"),
        ("ANGARIUM_NODE_ID", "0"),
        ("ANGARIUM_CLUSTER_TICK_MS", "1e3"),
        ("ANGARIUM_CLUSTER_TICK_MS", "1"),
        ("ANGARIUM_CLUSTER_ELECTION_TICKS", "3"),
        ("ANGARIUM_CLUSTER_CATALOG_VOTERS", "2"),
        ("ANGARIUM_CLUSTER_AUTO_CREATE_TOPICS", "perhaps"),
        ("ANGARIUM_LOG_FORMAT", "xml"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_by_the_name_of_its_variable(
    name: str, value: str
) -> None:
    assert complaint(environment={name: value}).startswith(f"{name}: ")


def test_the_reference_page_has_every_setting_with_its_variable_and_default() -> None:
    page = (ROOT / "docs" / "reference" / "node-toml.md").read_text(encoding="utf-8")
    for section, name in known_settings():
        assert re.search(rf"^\| `{name}` \| `{variable(section, name)}` \|", page, re.MULTILINE), (
            name
        )
    assert page.count("| `ANGARIUM_") == len(known_settings())
    for section, kind in SECTIONS.items():
        assert f"## `[{section}]`" in page
        assert all(one.name for one in fields(kind))
