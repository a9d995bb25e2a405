"""`[discovery]`: what each method needs, and what makes no sense."""

from __future__ import annotations

import re
import textwrap
import tomllib
from pathlib import Path

import pytest

from angarium.app.discovery_settings import DiscoverySettings
from angarium.app.security_settings import SecuritySettings
from angarium.app.settings import InvalidSettings, Settings
from angarium.app.settings_problems import problems
from angarium.app.sources import Given, environment_of, load_settings
from angarium.cli.commands.serve import discovery_flags
from angarium.errors import PreconditionFailed

ROOT = Path(__file__).resolve().parents[3]


def given(**settings: str) -> DiscoverySettings:
    flags = {("discovery", name): Given(value, f"--{name}") for name, value in settings.items()}
    return load_settings(flags=flags).discovery


def test_nobody_is_asked_by_default() -> None:
    assert not DiscoverySettings().is_on
    assert DiscoverySettings().opened() is None


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"method": "dns", "dns_name": "nodes.example.org"}, "DNS (nodes.example.org)"),
        ({"method": "serf"}, "the Serf agent at 127.0.0.1:7373"),
        ({"method": "serf", "serf_agent": "[::1]:1"}, "the Serf agent at [::1]:1"),
        (
            {"method": "kubernetes", "kubernetes_service": "nodes", "kubernetes_api": "api:443"},
            "Kubernetes at api:443 (service nodes)",
        ),
    ],
)
def test_a_method_and_whom_it_asks(settings: dict[str, str], name: str) -> None:
    opened = given(**settings).opened()
    assert opened is not None
    assert opened.name == name


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"method": "consul"}, "discovery.method: 'consul' is none of static, dns"),
        ({"method": "dns"}, 'discovery.dns_name: needed with method = "dns"'),
        ({"method": "kubernetes"}, "discovery.kubernetes_service: needed"),
        ({"port": "0"}, "discovery.port: from 1"),
        ({"cluster_id": "production"}, "discovery.cluster_id: 32 hexadecimal digits"),
        ({"dns_name": "a..b"}, "discovery.dns_name: 'a..b' is no name"),
        ({"dns_servers": "ns.example.org:53"}, "discovery.dns_servers: 'ns.example.org'"),
        ({"serf_agent": "7373"}, 'discovery.serf_agent: "7373" is not HOST:PORT'),
        ({"serf_tags": "role"}, "discovery.serf_tags: 'role' is not NAME=VALUE"),
        ({"kubernetes_service": "a/b"}, "discovery.kubernetes_service: 'a/b' is no name"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, str], complaint: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        given(**settings)
    assert complaint in str(refused.value)


def test_outside_of_a_pod_the_api_server_has_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = DiscoverySettings(method="kubernetes", kubernetes_service="nodes")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(PreconditionFailed, match="kubernetes_api"):
        settings.opened()
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    opened = settings.opened()
    assert opened is not None
    assert opened.name == "Kubernetes at [fd00::1]:6443 (service nodes)"


def test_the_servers_of_dns_need_no_port() -> None:
    servers = ("10.0.0.2", "10.0.0.3:5353", "fd00::1", "[fd00::2]:5353")
    found = DiscoverySettings(dns_servers=servers)._addresses("dns_servers")
    assert [str(one) for one in found] == [
        "10.0.0.2:53",
        "10.0.0.3:5353",
        "[fd00::1]:53",
        "[fd00::2]:5353",
    ]


def test_several_processes_get_the_same_settings() -> None:
    flags = {
        ("discovery", "method"): Given("serf", ""),
        ("discovery", "serf_tags"): Given("role=node,zone=a", ""),
        ("discovery", "serf_key_file"): Given("key", ""),
    }
    settings = load_settings(flags=flags)
    assert load_settings(environment=environment_of(settings)) == settings


@pytest.mark.parametrize(
    ("flag", "settings"),
    [
        ("dns:nodes.example.org", {"method": "dns", "dns_name": "nodes.example.org"}),
        ("serf", {"method": "serf"}),
        ("serf:10.0.0.1:7373", {"method": "serf", "serf_agent": "10.0.0.1:7373"}),
        ("kubernetes:nodes", {"method": "kubernetes", "kubernetes_service": "nodes"}),
    ],
)
def test_one_flag_is_the_method_and_whom_it_asks(flag: str, settings: dict[str, str]) -> None:
    assert {name: one.value for (_, name), one in discovery_flags(flag).items()} == settings


def test_who_finds_other_nodes_needs_to_know_them_apart() -> None:
    settings = Settings(
        discovery=DiscoverySettings(method="serf"),
        security=SecuritySettings(authentication="required"),
    )
    assert [one.setting for one in problems(settings)] == ["security.trust_peers"]


def test_the_settings_in_the_guide_are_taken() -> None:
    guide = (ROOT / "docs" / "guides" / "discovery.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?:^    .*\n|^\n)+", guide, re.MULTILINE)
    tables = [textwrap.dedent(one) for one in blocks if one.strip().startswith("[discovery]")]
    methods = [DiscoverySettings(**tomllib.loads(one)["discovery"]).method for one in tables]
    assert methods == ["dns", "serf", "kubernetes"]
