"""`[compat]` and `[users]`: what fits together, what does not, and what processes get."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from angarium.app.processes import processes_of
from angarium.app.settings import InvalidSettings
from angarium.app.sources import environment_of, load_settings
from angarium.cli.complaints import Refusal
from angarium.cli.local.compat import Compat
from angarium.cli.local.folder import LocalNode

if TYPE_CHECKING:
    from pathlib import Path

HASH = "$scrypt$ln=14,r=8,p=5$c2FsdHNhbHRzYWx0c2FsdA$" + "A" * 43


def written(folder: Path, text: str) -> Path:
    file = folder / "node.toml"
    file.write_text(f'[node]\nhost = "h"\n{text}', encoding="utf-8")
    return file


def test_users_are_lines_of_their_section(tmp_path: Path) -> None:
    file = written(tmp_path, f'[users]\nalice = "{HASH}"\n"b.ob" = "{HASH}"\n')
    settings = load_settings(file=file)
    assert settings.users.hashes == {"alice": HASH, "b.ob": HASH}
    again = load_settings(environment=environment_of(settings))
    assert again.users == settings.users


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[users]\nalice = "secret"\n', "no scrypt hash"),
        (f'[users]\n"a b" = "{HASH}"\n', "no user's name"),
        ("[users]\nalice = 5\n", "not a text"),
        ("[compat]\ngeo_grpc_port = 8070\n", "nobody has an account"),
        ("[compat]\nbale_grpc_port = 7401\n", "another door's"),
        ("[compat]\nbale_metrics_ports = [8000, 8000]\n", "another door's"),
        ("[compat]\nbale_metrics_ports = [70000]\n", "not a port"),
        ('[compat]\nhermes_join_token = "secret"\n', "no scrypt hash"),
        ("[compat]\nhermes_grcp_port = 1\n", "did you mean hermes_grpc_port"),
    ],
)
def test_what_does_not_fit_is_told(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidSettings, match=said):
        load_settings(file=written(tmp_path, text))


def test_processes_of_one_machine_never_share_a_port(tmp_path: Path) -> None:
    text = (
        "[compat]\nhermes_grpc_port = 50051\nbale_grpc_port = 8081\n"
        "bale_metrics_ports = [8000, 9091]\n"
    )
    file = written(tmp_path, text)
    settings = load_settings(file=file, environment={"ANGARIUM_NODE_PROCESSES": "3"})
    found = [one.compat for one in processes_of(settings, machine="m")]
    assert [one.hermes_grpc_port for one in found] == [50051, 50061, 50071]
    assert [one.bale_metrics_ports for one in found] == [(8000, 9091), (8010, 9101), (8020, 9111)]
    assert [one.hermes_http_port for one in found] == [None, None, None]
    clashing = written(tmp_path, "[compat]\nhermes_http_port = 8080\nbale_grpc_port = 8090\n")
    with pytest.raises(InvalidSettings, match="8090"):
        load_settings(file=clashing, environment={"ANGARIUM_NODE_PROCESSES": "3"})


def nodes(count: int) -> list[LocalNode]:
    return [LocalNode(number=one, wire_port=7390 + 10 * one) for one in range(1, count + 1)]


def ports(compat: Compat, count: int = 3) -> list[int]:
    return [port for node in nodes(count) for _, port in compat.ports(node)]


def test_one_profile_of_a_local_cluster_has_its_original_ports() -> None:
    assert ports(Compat.chosen("hermes", None)) == [50051, 8080, 50052, 8081, 50053, 8082]
    assert ports(Compat.chosen("geo", None)) == [8070, 8080, 8090]
    assert ports(Compat.chosen("bale", None))[:3] == [8081, 8000, 9091]


def test_several_profiles_have_ports_that_clash_with_nobody() -> None:
    found = ports(Compat.chosen("hermes,bale, geo", None))
    doors = [port for node in nodes(3) for port in (node.wire_port, node.grpc_port, node.http_port)]
    assert len({*found, *doors}) == len(found) + len(doors)
    assert ports(Compat.chosen("geo", "own")) == [7407, 7417, 7427]


@pytest.mark.parametrize(
    ("profiles", "which", "said"),
    [("kafka", None, "no profile 'kafka'"), ("hermes,geo", "original", "clash")],
)
def test_what_cannot_be_turned_on_is_refused(profiles: str, which: str | None, said: str) -> None:
    with pytest.raises(Refusal, match=said):
        Compat.chosen(profiles, which)


@pytest.mark.parametrize("profiles", ["hermes", "bale", "geo", "hermes,bale,geo"])
def test_what_a_local_cluster_writes_can_be_read(tmp_path: Path, profiles: str) -> None:
    compat = Compat.chosen(profiles, None)
    for node in nodes(3):
        text = compat.section(node, user_hash=HASH)
        settings = load_settings(file=written(tmp_path, text))
        assert sorted(port for _, port in settings.compat.ports) == sorted(
            port for _, port in compat.ports(node)
        )
    told = "\n".join(compat.lines(nodes(3)))
    assert all(one in told for one in profiles.split(","))
