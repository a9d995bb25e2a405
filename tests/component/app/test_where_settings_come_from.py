"""Settings: which source wins, and complaints that name the place and say what to do."""

from __future__ import annotations

from pathlib import Path

from tests.unit.app.test_where_settings_come_from import complaint

from angarium.addresses import Address
from angarium.app.sources import Given, load_settings


def written(folder: Path, text: str) -> Path:
    path = folder / "node.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, "[listen]\nwire_port = 1\ngrpc_port = 2\n[node]\nzone = 'a'\n")
    settings = load_settings(
        file=file,
        environment={"ANGARIUM_LISTEN_WIRE_PORT": "3", "ANGARIUM_LISTEN_GRPC_PORT": "4"},
        flags={("listen", "wire_port"): Given(5, "--wire-port")},
    )
    assert settings.listen.wire_port == 5
    assert settings.listen.grpc_port == 4
    assert settings.node.zone == "a"


def test_a_relative_path_in_the_file_starts_from_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, '[node]\ndata = "here"\n')
    assert load_settings(file=file).node.data == tmp_path / "here"
    flags = {("node", "data"): Given("there", "--data")}
    assert load_settings(file=file, flags=flags).node.data == Path("there")


def test_addresses_are_read_from_a_list_and_from_a_text_with_commas(tmp_path: Path) -> None:
    file = written(tmp_path, '[node]\njoin = ["a.example:7400", "[::1]:7410"]\n')
    expected = (Address("a.example", 7400), Address("::1", 7410))
    assert load_settings(file=file).node.join == expected
    environment = {"ANGARIUM_NODE_JOIN": "a.example:7400, [::1]:7410"}
    assert load_settings(environment=environment).node.join == expected


def test_a_door_can_be_left_closed(tmp_path: Path) -> None:
    assert (
        load_settings(file=written(tmp_path, "[listen]\ngrpc_port = 'off'\n")).listen.grpc_port
        is None
    )


def test_a_section_written_as_a_setting_is_explained(tmp_path: Path) -> None:
    assert "listen: it is a section, not a setting: write [listen]" in complaint(
        file=written(tmp_path, "listen = 3\n")
    )


def test_a_complaint_names_file_and_line_and_all_complaints_come_at_once(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "# mine\n[listen]\nwire_port = 'x'\ngrpc_prt = 1\n\n[nodes]\n\n[log]\nlevel='LOUD'\n",
    )
    said = complaint(file=file)
    assert f"{file}, line 3: listen.wire_port: 'x' is not a whole number" in said
    assert (
        f"{file}, line 4: listen.grpc_prt: there is no such setting; did you mean grpc_port?"
        in said
    )
    assert f"{file}, line 6: [nodes]: there is no such section; did you mean node?" in said
    assert f"{file}, line 9: log.level: there are DEBUG, INFO, WARNING, ERROR" in said


def test_a_file_that_is_no_toml_is_told_with_the_line(tmp_path: Path) -> None:
    said = complaint(file=written(tmp_path, "[listen]\nwire_port = = 3\n"))
    assert "node.toml: TOML:" in said
    assert "line 2" in said


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_bytes(b"\xff\xfe")
    assert "is no UTF-8 text" in complaint(file=tmp_path / "node.toml")
