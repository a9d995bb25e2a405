"""`pub` and `sub --ack manual` with a person at a terminal, who also presses Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cluster.command_line import Running, angarium, eventually

from angarium.client import SyncClient
from angarium.testing.broker import BrokerThread

if TYPE_CHECKING:
    from collections.abc import Iterator

CTRL_C = b"\x03"
CTRL_D = b"\x04"
INTERRUPTED = 130


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with BrokerThread() as broker:
        yield broker.addresses[0]


def test_lines_are_published_as_they_are_typed_until_ctrl_c(tmp_path: Path, servers: str) -> None:
    with (
        SyncClient(servers) as client,
        Running(tmp_path, "pub", "typed", "--servers", servers, on_terminal=True) as pub,
    ):
        client.create_topic("typed")
        pub.type_in(b"one\n")
        eventually(lambda: [one.value for one in client.fetch("typed")] == [b"one"], seconds=60)
        pub.type_in(b"two\n")
        eventually(lambda: len(client.fetch("typed")) == 2)
        pub.type_in(CTRL_C)
        assert pub.wait() == INTERRUPTED
        assert "Traceback" not in pub.said()


def test_ctrl_d_ends_it_and_the_sums_are_told(tmp_path: Path, servers: str) -> None:
    with Running(tmp_path, "pub", "ended", "--servers", servers, on_terminal=True) as pub:
        pub.type_in(b"one\n")
        pub.wait_for("there was no topic 'ended': publishing created it")
        pub.type_in(CTRL_D)
        assert pub.wait() == 0
        assert "1 record in " in pub.said()


def test_ctrl_c_before_anything_was_typed_ends_it(tmp_path: Path, servers: str) -> None:
    with Running(tmp_path, "pub", "typed", "--servers", servers, on_terminal=True) as pub:
        # It has the terminal, and waits for a line, once it has connected; before that Ctrl-C
        # ends it as well, and only what is said matters here. But Python's own start, before any
        # line of ours, takes it for a fault of its own.
        memory = Path(f"/proc/{pub.process.pid}/maps")
        eventually(lambda: "msgspec" in memory.read_text(encoding="utf-8"), seconds=60)
        pub.type_in(CTRL_C)
        assert pub.wait() in (INTERRUPTED, -2)
        assert "Exception" not in pub.said()


def test_records_are_decided_about_one_by_one_until_ctrl_c(tmp_path: Path, servers: str) -> None:
    words = ("sub", "jobs", "--group", "g", "--ack", "manual", "--format", "raw")
    with SyncClient(servers) as client:
        client.create_topic("jobs")
        client.publish_batch("jobs", [b"first", b"second"])
        with Running(tmp_path, *words, "--servers", servers, on_terminal=True) as sub:
            sub.wait_for("first")
            sub.wait_for("reject [REASON] or release?")
            sub.type_in(b"ack\n")
            sub.wait_for("second")
            sub.type_in(CTRL_C)
            assert sub.wait() == INTERRUPTED
            assert "Traceback" not in sub.said()
        eventually(lambda: [one.floor for one in client.describe_group("g").positions] == [1])


def test_who_waits_for_records_is_told_what_for(tmp_path: Path, servers: str) -> None:
    with SyncClient(servers) as client:
        client.create_topic("quiet")
        client.publish("quiet", b"there already")
        with Running(tmp_path, "sub", "quiet", "--servers", servers, on_terminal=True) as sub:
            sub.wait_for("--from earliest begins with what is there")
            sub.type_in(CTRL_C)
            assert sub.wait() == INTERRUPTED
        words = ("sub", "quiet", "--from", "earliest", "--servers", servers)
        with Running(tmp_path, *words, on_terminal=True) as sub:
            sub.wait_for("there already")
            assert "begins with" not in sub.said()


def test_a_long_reason_does_not_spoil_the_table_of_dead_letters(
    tmp_path: Path, servers: str
) -> None:
    with SyncClient(servers) as client:
        client.publish("spoilt", b"the value")
        with client.group("eaters").consume("spoilt") as records:
            for record in records:
                record.reject("line one\n" + "x" * 500)
                break

    def rows() -> list[str]:
        words = ("dlq", "list", "--group", "eaters", "--servers", servers)
        listed = angarium(tmp_path, *words).stdout.splitlines()
        return [line for line in listed if "the value" in line]

    eventually(rows)  # the reject is committed first, and then its letter is written
    (row,) = rows()
    assert "line one" in row
    assert len(row) < 250


def test_a_mistyped_name_is_said_with_the_one_that_was_perhaps_meant(
    tmp_path: Path, servers: str
) -> None:
    angarium(tmp_path, "topic", "create", "orders", "--servers", servers)
    made = angarium(tmp_path, "pub", "ordres", "x", "--servers", servers)
    assert "there was no topic 'ordres'" in made.stderr
    assert "did you mean orders?" in made.stderr
    again = angarium(tmp_path, "pub", "ordres", "x", "--servers", servers)
    assert not again.stderr
    quiet = angarium(tmp_path, "pub", "quiet", "x", "--quiet", "--servers", servers)
    assert not quiet.stderr


def test_the_clusters_own_topic_is_not_published_to(tmp_path: Path, servers: str) -> None:
    said = angarium(
        tmp_path, "pub", "angarium.transactions", "x", "--servers", servers, status=2
    ).stderr
    assert "angarium.transactions is internal" in said
