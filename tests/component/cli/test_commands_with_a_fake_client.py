"""What the commands that talk to a cluster ask for, print, and answer the shell with."""

from __future__ import annotations

import io
import json
import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.component.cli.fake_client import FakeCluster

from angarium.api import Start, StartAt, TopicConfig
from angarium.cli.main import BROKEN_PIPE, INTERRUPTED, main
from angarium.cli.probe import Probe
from angarium.errors import LimitExceeded, NotLeader, OutcomeUnknown, TooLarge
from angarium.modes import DeliveryMode
from angarium.wire import Unreachable

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.api import TopicInfo


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeCluster:
    found = FakeCluster()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANGARIUM_PROFILES", str(tmp_path / "none.toml"))
    monkeypatch.setattr("angarium.cli.session.Client", found.client)
    monkeypatch.setattr("angarium.cli.in_sync.Probe", Silent)
    return found


class Silent(Probe):
    """A node that does not answer."""

    async def topic(self, name: str) -> TopicInfo:
        raise Unreachable(f"{self.address} says nothing about {name}")


class Shell:
    """Runs commands, and keeps what they printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.err = ""

    def __call__(self, *words: str, status: int = 0) -> str:
        assert main(words) == status
        said = self._capsys.readouterr()
        self.err = said.err
        return said.out


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    # `run` sets it for its app; set and taken away here, it is gone again after the test.
    monkeypatch.setenv("ANGARIUM_SERVERS", "")
    monkeypatch.delenv("ANGARIUM_SERVERS")
    return Shell(capsys)


def type_in(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))


# --- topics --------------------------------------------------------------------------------------


def test_a_topic_is_created_with_what_the_flags_say(cluster: FakeCluster, shell: Shell) -> None:
    shell(
        *("topic", "create", "t", "--partitions", "2", "--replication", "1", "--mode", "eventual"),
        *("--retention", "7d", "--retention-bytes", "1GiB"),
    )
    topic = cluster.topics["t"]
    assert len(topic.partitions) == 2
    assert topic.config == TopicConfig(
        replication=1,
        mode=DeliveryMode.EVENTUAL,
        retention_ms=604_800_000,
        retention_bytes=1 << 30,
    )


def test_creating_twice_is_an_error_unless_told_otherwise(
    cluster: FakeCluster, shell: Shell
) -> None:
    shell("topic", "create", "t")
    shell("topic", "create", "t", status=4)
    assert "--if-not-exists" in shell.err
    assert "topic             t" in shell("topic", "create", "t", "--if-not-exists")


def test_topics_are_printed_as_tables_and_as_json(cluster: FakeCluster, shell: Shell) -> None:
    assert "There are no topics" in shell("topic", "list")
    shell("topic", "create", "t", "--mode", "performance")
    assert "t               3            2  performance" in shell("topic", "list")
    listed = json.loads(shell("topic", "list", "--format", "json"))
    assert listed[0]["config"]["mode"] == "performance"
    described = json.loads(shell("--format", "json", "topic", "describe", "t"))
    assert described["partitions"][0]["leader"] == 1


def test_a_topic_tells_whether_added_partitions_are_in_use(
    cluster: FakeCluster, shell: Shell
) -> None:
    shell("topic", "create", "t", "--partitions", "5")
    assert "layouts" not in shell("topic", "describe", "t")
    added = msgspec.structs.replace(cluster.topics["t"], layouts=(3, 5), layout=0)
    cluster.topics["t"] = added
    waits = "layouts           3, then 5 partitions; the last is being carried out\n"
    assert waits in shell("topic", "describe", "t")
    cluster.topics["t"] = msgspec.structs.replace(added, layout=1)
    assert "layouts           3, then 5 partitions\n" in shell("topic", "describe", "t")


def test_who_is_in_sync_is_asked_of_the_leaders(
    cluster: FakeCluster, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("topic", "create", "t", "--partitions", "3")
    asked: list[str] = []

    class Leader(Silent):
        async def topic(self, name: str) -> TopicInfo:
            asked.append(str(self.address))
            first, second, third = cluster.topics[name].partitions
            return msgspec.structs.replace(
                cluster.topics[name],
                partitions=(
                    msgspec.structs.replace(first, in_sync=(1, 2)),
                    msgspec.structs.replace(second, in_sync=()),
                    third,
                ),
            )

    monkeypatch.setattr("angarium.cli.in_sync.Probe", Leader)
    said = shell("topic", "describe", "t")
    assert asked == ["a:1"]
    columns = [line.split()[3:-2] for line in said.splitlines() if "1 2" in line]
    assert columns == [["2", "1", "2"], ["2", "changing"], ["2", "-"]]
    assert "where there is -, none answered" in said
    partitions = json.loads(shell("topic", "describe", "t", "--format", "json"))["partitions"]
    assert [one["in_sync"] for one in partitions] == [[1, 2], [], None]


def test_altering_changes_only_what_was_named(cluster: FakeCluster, shell: Shell) -> None:
    shell("topic", "create", "t", "--retention", "1d", "--mode", "eventual")
    shell("topic", "alter", "t", "--retention", "none")
    config = cluster.topics["t"].config
    assert (config.retention_ms, config.mode) == (None, DeliveryMode.EVENTUAL)
    shell("topic", "alter", "t", "--partitions", "9")
    assert cluster.calls[-2] == ("alter", "t", 9, None)
    shell("topic", "alter", "t", status=2)
    assert "nothing to change" in shell.err


def test_deleting_needs_a_yes(
    cluster: FakeCluster, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("topic", "create", "t")
    type_in(monkeypatch, b"yes\n")
    shell("topic", "delete", "t", status=2)
    assert "--yes" in shell.err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    shell("topic", "delete", "t")
    shell("topic", "create", "t")
    shell("topic", "delete", "t", "--yes")
    assert not cluster.topics


# --- records -------------------------------------------------------------------------------------


def test_arguments_are_published_and_answered_with_their_place(
    cluster: FakeCluster, shell: Shell
) -> None:
    said = shell("pub", "t", "one", "two", "--key", "k", "--header", "a=b=c", "--mode", "eventual")
    assert said == "t/0@0-1 eventual, provisional\n"
    assert [(one.key, one.value) for one in cluster.records["t"]] == [
        (b"k", b"one"),
        (b"k", b"two"),
    ]
    assert cluster.records["t"][0].headers == (("a", b"b=c"),)
    answer = json.loads(shell("pub", "t", "three", "--format", "json", "--partition", "4"))
    assert (answer["offset"], answer["partition"], answer["mode"]) == (2, 4, "consistent")


def test_records_may_come_later_or_end_and_a_key_may_be_gone(
    cluster: FakeCluster, shell: Shell
) -> None:
    before = time.time_ns() // 1_000
    shell("pub", "t", "later", "--delay", "15m", "--expires-in", "1h")
    (record,) = cluster.records["t"]
    assert 0 <= record.deliver_at - before - 900_000_000 < 60_000_000
    assert 0 <= record.expires_at - before - 3_600_000_000 < 60_000_000
    assert shell("pub", "t", "--key", "k", "--null") == "t/0@1 consistent\n"
    assert (cluster.records["t"][1].key, cluster.records["t"][1].value) == (b"k", None)
    shell("pub", "t", "--null", status=2)
    assert "--null is one record for a --key" in shell.err


def test_lines_of_standard_input_are_published_in_order_and_summed_up(
    cluster: FakeCluster, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, b"".join(b"%d\r\n" % number for number in range(70_000)) + b"last")
    said = shell("pub", "t")
    assert said.startswith("70,001 records in ")
    assert "partition 0: offsets 0 to 70000" in said
    assert [one.value for one in cluster.records["t"][:2]] == [b"0", b"1"]
    assert cluster.records["t"][-1].value == b"last"
    type_in(monkeypatch, b"x\n\ny\n")
    summary = json.loads(shell("pub", "u", "--format", "json"))
    assert (summary["records"], summary["partitions"]) == (
        3,
        {"0": {"first_offset": 0, "next_offset": 3}},
    )


def test_a_dash_is_standard_input_wherever_it_stands(
    cluster: FakeCluster, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def values() -> list[bytes | None]:
        return [one.value for one in cluster.records["t"]]

    type_in(monkeypatch, b"one\ntwo\n")
    assert shell("pub", "t", "-").startswith("2 records in ")
    assert values() == [b"one", b"two"]
    type_in(monkeypatch, b"one\ntwo\n")
    shell("pub", "t", "first", "-", "last", "--quiet")
    assert values()[2:] == [b"first", b"one", b"two", b"last"]
    type_in(monkeypatch, b"one\ntwo\n")
    assert shell("pub", "t", "-", "--whole").startswith("1 record in ")
    assert values()[6:] == [b"one\ntwo\n"]


def test_keys_can_stand_in_front_of_their_values(
    cluster: FakeCluster, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, b"a:1\nb:2:3\n")
    shell("pub", "t", "--key-separator", ":", "--quiet")
    assert [(one.key, one.value) for one in cluster.records["t"]] == [(b"a", b"1"), (b"b", b"2:3")]
    type_in(monkeypatch, b"nothing\n")
    shell("pub", "t", "--key-separator", ":", status=2)
    assert "between key and value" in shell.err


def test_files_are_published_by_line_or_whole(
    cluster: FakeCluster, shell: Shell, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_bytes(b"1\n2\n")
    shell("pub", "t", "--file", "a.txt")
    shell("pub", "t", "--file", "a.txt", "--whole")
    assert [one.value for one in cluster.records["t"]] == [b"1", b"2", b"1\n2\n"]
    shell("pub", "t", "--file", "nowhere.txt", status=1)
    assert shell.err == "angarium: nowhere.txt: No such file or directory\n"


def test_a_rate_is_kept(
    cluster: FakeCluster, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, b"x\n" * 100)
    summary = json.loads(shell("pub", "t", "--rate", "500", "--format", "json"))
    assert summary["records"] == 100
    assert summary["batches"] == 4  # 25 at a time: twenty turns a second
    assert summary["seconds"] >= 0.15


def test_records_are_printed_in_each_format(cluster: FakeCluster, shell: Shell) -> None:
    shell("pub", "t", "hello\x1b[2J", "--key", "k", "--header", "h=v")
    line = shell("sub", "t", "--from", "earliest", "--max", "1")
    assert line == "t/0@0                2023-11-14 22:13:20.000 k            hello\\x1b[2J [h=v]\n"
    found = json.loads(shell("sub", "t", "--no-follow", "--format", "json"))
    assert (found["value"], found["headers"]) == ("hello\x1b[2J", [{"name": "h", "value": "v"}])


def test_raw_prints_the_bytes_themselves(
    cluster: FakeCluster, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    main(["pub", "t", "\udcff\udcfe", "--quiet"])
    main(["sub", "t", "--no-follow", "--format", "raw"])
    assert capfdbinary.readouterr().out == b"\xff\xfe\n"


@pytest.mark.parametrize(
    ("flags", "start"),
    [
        ([], "live"),
        (["--from", "earliest"], "earliest"),
        (["--from", "17"], 17),
        (["--from", "1970-01-01T00:00:01Z"], Start(StartAt.TIMESTAMP, 1_000_000)),
    ],
)
def test_sub_begins_where_it_is_told(
    cluster: FakeCluster, shell: Shell, flags: list[str], start: object
) -> None:
    shell("sub", "t", "u.*", *flags)
    assert cluster.calls[0] == ("subscribe", ("t", "u.*"), start)
    assert ("unsubscribed",) in cluster.calls


def test_sub_without_follow_reads_what_is_there_from_the_beginning(
    cluster: FakeCluster, shell: Shell
) -> None:
    shell("topic", "create", "t1")
    shell("pub", "t1", "a", "b", "c")
    assert len(shell("sub", "t*", "--no-follow", "--max", "2").splitlines()) == 2
    assert ("read", "t1", "earliest") in cluster.calls
    assert shell("sub", "t1", "--no-follow", "--partition", "7") == ""
    shell("sub", "x*", "--no-follow", status=2)
    assert "no topic matches x*" in shell.err


def test_fetch_reads_on_until_it_has_enough_and_the_end_is_no_error(
    cluster: FakeCluster, shell: Shell
) -> None:
    shell("pub", "t", "a", "b", "c", "d", "e")
    assert len(shell("fetch", "t", "0", "1", "--max", "3").splitlines()) == 3
    assert len(shell("fetch", "t", "0", "3", "--max", "9").splitlines()) == 2
    assert shell("fetch", "empty", "0", "0") == ""
    assert "There is nothing at empty/0@0 yet." in shell.err


def test_a_record_that_has_expired_is_said_to_have(cluster: FakeCluster, shell: Shell) -> None:
    shell("pub", "t", "a", "expired", "c")
    assert shell("fetch", "t", "0", "1", status=3) == ""
    assert "expired" in shell.err


# --- the cluster ---------------------------------------------------------------------------------


def test_the_cluster_is_shown(cluster: FakeCluster, shell: Shell) -> None:
    said = shell("cluster", "status")
    assert "1 of 2 alive, as node 1 sees it" in said
    assert "silent" in said
    assert json.loads(shell("cluster", "status", "--format", "json"))["cluster_id"] == "feed"


def test_joining_is_explained_with_the_addresses_of_living_members(
    cluster: FakeCluster, shell: Shell
) -> None:
    assert "serve --data DIR --join a:1\n" in shell("cluster", "add")


def test_nodes_are_drained_removed_and_handed_to(cluster: FakeCluster, shell: Shell) -> None:
    assert "cluster remove 2" in shell("cluster", "drain", "2", "--wait")
    shell("cluster", "drain", "2", "--undo")
    said = shell("cluster", "remove", "2")
    assert said == "node 2 was removed; its process ends when it hears of it\n"
    assert json.loads(shell("cluster", "remove", "2", "--format", "json"))["removed"]
    shell("cluster", "transfer", "t", "0", "1", "--format", "json")
    assert [call for call in cluster.calls if call != ("closed",)] == [
        ("drain", 2, True),
        ("drain", 2, False),
        ("remove", 2),
        ("remove", 2),
        ("transfer", "t", 0, 1),
    ]


def test_a_leader_that_is_not_the_preferred_one_is_said_to_be_one_for_the_moment(
    cluster: FakeCluster, shell: Shell
) -> None:
    shell("topic", "create", "t")
    assert "node 1 is its preferred leader" in shell("cluster", "transfer", "t", "0", "2")
    assert "for the moment" not in shell("cluster", "transfer", "t", "0", "1")


def test_a_lost_majority_is_told_with_what_to_do(cluster: FakeCluster, shell: Shell) -> None:
    cluster.failure = NotLeader("the catalog has 1 of 3 voters: …; missing: node 2, node 3")
    shell("cluster", "remove", "2", status=5)
    assert shell.err.splitlines() == [
        "angarium: the catalog has 1 of 3 voters: …; missing: node 2, node 3",
        "An election passes in a moment; nodes that are missing have to come back: `angarium"
        " cluster status` shows them, `angarium up --restart` starts local ones.",
    ]


def test_partitions_without_a_majority_are_described_with_their_numbers(
    cluster: FakeCluster, shell: Shell
) -> None:
    shell("topic", "create", "t", "--partitions", "5")
    topic = cluster.topics["t"]
    troubles = [f"partition {number} of t has 1 of 3 replicas: …" for number in range(5)]
    cluster.topics["t"] = msgspec.structs.replace(
        topic,
        partitions=tuple(
            msgspec.structs.replace(one, leader=None, trouble=trouble)
            for one, trouble in zip(topic.partitions, troubles, strict=True)
        ),
    )
    said = shell("topic", "describe", "t").splitlines()
    assert [line for line in said[-7:] if line] == [
        *troubles[:3],
        "2 more partitions have no leader either; --format json says why of each.",
    ]
    shown = json.loads(shell("topic", "describe", "t", "--format", "json"))
    assert [one["trouble"] for one in shown["partitions"]] == troubles


def test_what_a_command_waits_for_is_told_on_standard_error(
    cluster: FakeCluster, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell("topic", "list")
    cluster.tell_what_is_waited_for(NotLeader("nobody\x1b[2J"))
    assert capsys.readouterr().err == "angarium: waiting: nobody\\x1b[2J\n"


def test_draining_a_node_that_cannot_be_emptied_is_not_waited_for(
    cluster: FakeCluster, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("topic", "create", "t")  # the fake cluster has two nodes, and two replicas of everything
    ask = cluster.client

    def draining(*servers: str, **chosen: Any) -> Any:
        client = ask(*servers, **chosen)
        look = client.cluster_status

        async def status() -> Any:
            seen = await look()
            first, second = seen.nodes
            second = msgspec.structs.replace(second, draining=True, replicas=1)
            return msgspec.structs.replace(seen, nodes=(first, second))

        monkeypatch.setattr(client, "cluster_status", status)
        return client

    monkeypatch.setattr("angarium.cli.session.Client", draining)
    said = shell("cluster", "drain", "2", "--wait", status=4)
    assert "t needs 2 hosts and 1 are left" in said
    assert "cluster drain 2 --undo" in said
    told = json.loads(shell("cluster", "drain", "2", "--format", "json", status=4))
    assert told["stuck"] == "t needs 2 hosts and 1 are left"
    assert "again" in shell("cluster", "drain", "2", "--undo")


def test_a_misspelt_dead_letter_topic_is_not_taken_for_an_empty_one(
    cluster: FakeCluster, shell: Shell
) -> None:
    shell("dlq", "list", "--topic", "nope", status=3)
    assert "there is no topic 'nope'" in shell.err


@pytest.mark.parametrize("words", [("topic", "describe"), ("dlq", "list", "--topic")])
def test_a_topic_that_was_perhaps_meant_is_asked_about(
    cluster: FakeCluster, shell: Shell, words: tuple[str, ...]
) -> None:
    shell("topic", "create", "orders")
    shell(*words, "oders", status=3)
    assert "there is no topic 'oders'\nDid you mean orders?" in shell.err


# --- when it goes wrong --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "status", "said"),
    [
        (Unreachable("a:1 cannot be reached"), 5, "angarium up"),
        (OutcomeUnknown("the connection broke"), 6, "may or may not"),
        (LimitExceeded("connections_max", "full"), 7, "connections_max: full"),
        (TooLarge("batch_bytes_max", "it is"), 7, "Waiting does not help"),
        (ZeroDivisionError("oops"), 1, "ANGARIUM_TRACEBACK=1"),
        (PermissionError(13, "Permission denied", "x.toml"), 1, "x.toml: Permission denied"),
    ],
)
def test_every_failure_is_a_sentence_with_advice_and_a_status(
    cluster: FakeCluster, shell: Shell, failure: Exception, status: int, said: str
) -> None:
    cluster.failure = failure
    shell("topic", "list", status=status)
    assert shell.err.startswith("angarium: ")
    assert said in shell.err
    assert "Traceback" not in shell.err


def test_an_address_that_nobody_named_is_said_to_be_a_guess(
    cluster: FakeCluster, shell: Shell
) -> None:
    cluster.failure = Unreachable("no node can be reached at 127.0.0.1:7400")
    shell("topic", "list", status=5)
    assert "No address was named, and no cluster runs in .angarium of this folder" in shell.err
    assert "--servers HOST:PORT" in shell.err
    cluster.failure = Unreachable("no node can be reached at 127.0.0.1:7400")
    shell("topic", "list", "--servers", "127.0.0.1:7400", status=5)
    assert "No address was named" not in shell.err


def test_for_those_who_mend_this_program_there_is_a_traceback(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.failure = ZeroDivisionError("oops")
    monkeypatch.setenv("ANGARIUM_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        main(["topic", "list"])


def test_ctrl_c_ends_quietly(
    cluster: FakeCluster, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("angarium.cli.commands.topic.talk", interrupted)
    shell("topic", "list", status=INTERRUPTED)
    assert shell.err == ""


def test_an_unknown_code_of_a_newer_cluster_still_has_a_status(
    cluster: FakeCluster, shell: Shell
) -> None:
    assert BROKEN_PIPE == 141
    cluster.failure = OutcomeUnknown("x\x1b[2Jy")
    cluster.failure.add_note("3 of 4 batches failed")
    shell("topic", "list", status=6)
    assert "x\\x1b[2Jy\n3 of 4 batches failed" in shell.err
