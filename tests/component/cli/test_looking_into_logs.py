"""`angarium log inspect`: what is in a node's files, whole or damaged, and nothing is changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from angarium.batch import BatchBuilder, stamp
from angarium.cli.main import main
from angarium.ids import CATALOG_GROUP, Incarnation, Index, Micros, Offset, Term
from angarium.log.os_disk import OsDisk
from angarium.log.wal import Wal
from angarium.raft.messages import Entry

if TYPE_CHECKING:
    from pathlib import Path

DAMAGED = 8


def stamped(base: int, *values: bytes) -> bytes:
    builder = BatchBuilder()
    for value in values:
        builder.add(value, key=b"k")
    batch = bytearray(builder.build())
    stamp(batch, base_offset=Offset(base), term=Term(1), append_time=Micros(1_000 + base))
    return bytes(batch)


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    path = tmp_path / "00000000000000000005.seg"
    path.write_bytes(stamped(5, b"one", b"two\x1b[2J") + stamped(7, b"\xff") + bytes(100))
    return path


@pytest.fixture
def wal(tmp_path: Path) -> Path:
    disk = OsDisk(tmp_path / "node")
    log = Wal.open(disk, incarnation=Incarnation(7))
    log.add_group(CATALOG_GROUP)
    log.append(CATALOG_GROUP, entries=[Entry(Term(1), Index(1), data=b"x")])
    log.sync()
    log.close()
    return next((tmp_path / "node" / "wal").glob("*.log"))


def inspected(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    status = main(["log", "inspect", *map(str, arguments)])
    return status, capsys.readouterr().out


def test_a_segment_is_shown_batch_by_batch(
    segment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = segment.read_bytes()
    status, said = inspected(capsys, segment, "--format", "json")
    found = json.loads(said)
    assert status == 0
    assert (found["base_offset"], found["next_offset"], found["records"]) == (5, 8, 3)
    assert [part["offset"] for part in found["parts"]] == [5, 7]
    assert found["after_that"] == "zeros"
    assert segment.read_bytes() == before


def test_records_are_shown_without_their_control_characters(
    segment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, said = inspected(capsys, segment, "--records", "--max", "2")
    assert "two\\x1b[2J" in said
    assert "\x1b[2J" not in said
    _, said = inspected(capsys, segment, "--records", "--format", "json")
    assert json.loads(said)["parts"][2]["value_base64"] == "/w=="


def test_a_damaged_segment_ends_with_its_own_status(
    segment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = bytearray(segment.read_bytes())
    content[60] ^= 1
    segment.write_bytes(content)
    status, said = inspected(capsys, segment)
    assert status == DAMAGED
    assert "broken" in said


def test_a_write_ahead_log_is_shown_frame_by_frame(
    wal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = inspected(capsys, wal, "--format", "json")
    found = json.loads(said)
    assert status == 0
    assert found["incarnation"] == "000000000007"
    assert found["frames"]["entry"] == 1
    assert any(part["kind"] == "entry" and part["index"] == 1 for part in found["parts"])


def test_a_folder_is_summed_up(
    wal: Path, segment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = inspected(capsys, tmp_path)
    assert status == 0
    assert "offsets 5 to 7" in said
    assert str(wal) in said


def test_other_files_are_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert main(["log", "inspect", str(tmp_path / "notes.txt")]) == 2
    assert "neither a segment" in capsys.readouterr().err
    assert main(["log", "inspect", str(tmp_path / "nothing.seg")]) == 1
    assert "No such file" in capsys.readouterr().err
