"""Several processes on one machine: what each is told, and which folders are refused."""

from __future__ import annotations

import pytest

from angarium.addresses import Address
from angarium.app.processes import processes_of, reached_at
from angarium.app.settings import InvalidSettings, Settings
from angarium.app.settings_problems import problems
from angarium.app.sources import Given, environment_of, load_settings


def settings_of(**variables: str) -> Settings:
    return load_settings(environment={f"ANGARIUM_{key}": one for key, one in variables.items()})


def test_each_process_has_its_folder_and_ports_and_all_share_the_host() -> None:
    settings = settings_of(NODE_PROCESSES="3", NODE_FORM="yes", NODE_DATA="/d")
    found = processes_of(settings, machine="big")
    assert [str(one.node.data) for one in found] == [f"/d/process-{n}" for n in (1, 2, 3)]
    assert [one.listen.wire_port for one in found] == [7400, 7410, 7420]
    assert [one.listen.grpc_port for one in found] == [7401, 7411, 7421]
    assert [one.listen.http_port for one in found] == [7402, 7412, 7422]
    assert {one.node.host for one in found} == {"big"}
    assert {one.node.processes for one in found} == {1}
    assert not any(problems(one) for one in found)


def test_the_first_forms_and_the_others_join_through_it() -> None:
    found = processes_of(settings_of(NODE_PROCESSES="2", NODE_FORM="yes"), machine="big")
    assert [one.node.form for one in found] == [True, False]
    assert [one.node.join for one in found] == [(), (Address("127.0.0.1", 7400),)]


def test_where_all_join_the_first_is_asked_before_the_others() -> None:
    found = processes_of(settings_of(NODE_PROCESSES="2", NODE_JOIN="x:1"), machine="big")
    there = Address("x", 1)
    assert [one.node.join for one in found] == [(there,), (Address("127.0.0.1", 7400), there)]


def test_a_chosen_host_label_wins_and_a_name_that_many_machines_have_is_refused() -> None:
    settings = settings_of(NODE_PROCESSES="2", NODE_HOST="rack-7")
    assert {one.node.host for one in processes_of(settings, machine="x")} == {"rack-7"}
    with pytest.raises(InvalidSettings, match="--host"):
        processes_of(settings_of(NODE_PROCESSES="2"), machine="localhost.localdomain")


def test_advertised_ports_move_along_and_a_closed_door_stays_closed() -> None:
    settings = settings_of(
        NODE_PROCESSES="2", LISTEN_GRPC_PORT="off", ADVERTISE_WIRE_PORT="9000", ADVERTISE_HOST="x"
    )
    second = processes_of(settings, machine="big")[1]
    assert (second.advertise.wire_port, second.advertise.grpc_port) == (9010, None)
    assert second.listen.grpc_port is None


@pytest.mark.parametrize(("host", "dialled"), [("0.0.0.0", "127.0.0.1"), ("::", "::1")])
def test_siblings_of_a_node_that_listens_everywhere_dial_the_loopback(
    host: str, dialled: str
) -> None:
    settings = settings_of(LISTEN_HOST=host, LISTEN_INSECURE="yes", ADVERTISE_HOST="x")
    assert reached_at(settings) == Address(dialled, 7400)


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        (("node", "id"), 3, "names one node"),
        (("listen", "wire_port"), 0, "find each other by their ports"),
        (("listen", "wire_port"), 65_530, "above 65535"),
        (("advertise", "grpc_port"), 65_530, "above 65535"),
        (("listen", "grpc_port"), 7410, "another process has its wire"),
        (("listen", "grpc_port"), 7390, "another process has its wire"),
        (("node", "processes"), 65, "from 1 to 64"),
        (("node", "processes"), 0, "from 1 to 64"),
    ],
)
def test_what_several_processes_cannot_share_is_refused(
    setting: tuple[str, str], value: int, said: str
) -> None:
    flags = {("node", "processes"): Given(2, "--processes"), setting: Given(value, "there")}
    with pytest.raises(InvalidSettings, match=f"there: {'.'.join(setting)}: .*{said}"):
        load_settings(flags=flags)


def test_a_port_that_only_many_processes_would_reach_is_fine_for_few() -> None:
    assert settings_of(NODE_PROCESSES="2", LISTEN_GRPC_PORT="7420").listen.grpc_port == 7420


def test_settings_written_as_variables_are_read_as_the_same_settings() -> None:
    rich = settings_of(
        NODE_PROCESSES="2",
        NODE_JOIN="x:1,[::1]:2",
        NODE_REGION="eu, north",
        LISTEN_GRPC_PORT="off",
        ADVERTISE_WIRE_PORT="9000",
        CLUSTER_AUTO_CREATE_TOPICS="no",
        LOG_FORMAT="json",
    )
    for settings in (Settings(), rich, *processes_of(rich, machine="big")):
        assert load_settings(environment=environment_of(settings)) == settings
