"""`angarium log inspect`: what is in a segment or a file of the write-ahead log.

It reads with the node's own code, so that what it calls whole or damaged is what a node would.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from angarium.batch import Batch, Codec
from angarium.cli.complaints import Refusal, exit_status
from angarium.cli.grammar.quantities import shown_size, shown_time
from angarium.cli.output import print_json, print_table, readable, text_or_base64
from angarium.cli.profiles import choices
from angarium.cli.read_only import ReadOnlyFile
from angarium.errors import CorruptData
from angarium.ids import Offset
from angarium.log.segments.frames import GAP_BYTES, frame_at
from angarium.log.segments.names import SEGMENT
from angarium.log.segments.scan import Tail, scan
from angarium.log.wal.format import (
    FILE_HEADER_BYTES,
    FrameKind,
    file_seed,
    frame_seed,
    parse_file_header,
)
from angarium.log.wal.scan import FileScan

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from angarium.log.wal.scan import ScannedRound

WAL: Final = ".log"

_INDEX_BYTES: Final = 1 << 20
"""The scan's index is thrown away, so it may be coarse."""

Report = dict[str, Any]


def run(options: Namespace) -> int:
    """Print what is in a file, or a line about each file of a folder."""
    path = Path(options.path)
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix in (SEGMENT, WAL) and p.is_file())
        reports = [_report(file, parts=0, records=False) for file in files]
        _print_folder(reports, as_json=choices(options).is_json)
    else:
        reports = [_report(path, parts=options.max, records=options.records)]
        _print_file(reports[0], as_json=choices(options).is_json)
    damaged = any(report["damaged"] for report in reports)
    return exit_status(CorruptData()) if damaged else 0


def _report(path: Path, *, parts: int, records: bool) -> Report:
    with ReadOnlyFile(path) as file:
        head = file.pread(FILE_HEADER_BYTES, 0)
        if path.suffix == SEGMENT:
            return _segment(path, file, parts=parts, records=records)
        if path.suffix == WAL or parse_file_header(head) is not None:
            return _wal(path, file, parts=parts)
    raise Refusal(
        f"{path} is neither a segment (*{SEGMENT}) nor a file of the write-ahead log (*{WAL}),"
        " nor a folder with some"
    )


# --- segments ----------------------------------------------------------------------------------


def _segment(path: Path, file: ReadOnlyFile, *, parts: int, records: bool) -> Report:
    if not path.stem.isdecimal():
        raise Refusal(f"{path}: a segment is named by its first offset; this name has none")
    scanned = scan(file, Offset(int(path.stem)), index_bytes=_INDEX_BYTES)
    segment = scanned.segment
    report: Report = {
        "path": str(path),
        "kind": "segment",
        "bytes": file.size(),
        "base_offset": segment.base_offset,
        "next_offset": segment.next_offset,
        "batches": segment.batches,
        "records": segment.records,
        "valid_bytes": segment.bytes,
        "after_that": scanned.tail.value,
        # A torn last write looks like damage here; the node tells them apart by its other files.
        "damaged": scanned.tail is Tail.BROKEN,
    }
    if parts:
        batches = _batches(file, segment.bytes)
        if records:
            listed = (record for batch, _ in batches if batch for record in batch)
            report["parts"] = [_record(record) for record in islice(listed, parts)]
        else:
            report["parts"] = [_batch(batch, gap) for batch, gap in islice(batches, parts)]
    return report


def _batches(file: ReadOnlyFile, end: int) -> Iterator[tuple[Batch | None, tuple[int, int]]]:
    """Yield each batch with its offsets; None stands for a declared gap."""
    position = 0
    while position < end:
        frame = frame_at(file.pread(GAP_BYTES, position), 0)
        assert frame is not None, "the scan found it"
        offsets = (frame.base_offset, frame.next_offset)
        content = None if frame.is_gap else Batch.trusted(file.pread(frame.length, position))
        yield content, offsets
        position += frame.length


def _batch(batch: Batch | None, offsets: tuple[int, int]) -> Report:
    if batch is None:
        return {"offset": offsets[0], "next_offset": offsets[1], "records": 0, "codec": "gap"}
    return {
        "offset": batch.base_offset,
        "next_offset": batch.next_offset,
        "records": batch.count,
        "bytes": batch.length,
        "codec": Codec(batch.codec).name.lower(),
        "term": batch.term,
        "append_time": shown_time(batch.append_time),
        "producer": batch.producer_id or None,
        "sequence": batch.first_sequence if batch.producer_id else None,
    }


def _record(record: Any) -> Report:
    return {
        "offset": record.offset,
        "append_time": shown_time(record.append_time),
        "key": record.key,
        "value": record.value,
    }


# --- the write-ahead log -----------------------------------------------------------------------


def _wal(path: Path, file: ReadOnlyFile, *, parts: int) -> Report:
    content = file.pread(file.size(), 0)
    header = parse_file_header(content)
    report: Report = {"path": str(path), "kind": "wal", "bytes": len(content)}
    if header is None:
        return {**report, "damaged": True, "after_that": "its header is damaged"}
    walk = FileScan(
        content,
        file_seed=file_seed(header.incarnation, header.sequence),
        frame_seed=frame_seed(header.incarnation),
        known_end=None,
    )
    groups = list(walk.rounds())
    kinds = Counter(FrameKind(frame.kind).name.lower() for one in groups for frame in one.frames)
    report |= {
        "sequence": header.sequence,
        "incarnation": f"{header.incarnation:012x}",
        "sync_rounds": len(groups),
        "frames": dict(sorted(kinds.items())),
        "raft_groups": len({f.group for one in groups for f in one.frames if _has_group(f.kind)}),
        "valid_bytes": walk.end,
        "after_that": "a torn write" if walk.cut_bytes else "room",
        "damaged": any(one.is_damaged for one in groups),
    }
    if parts:
        report["parts"] = list(islice(_frames(groups), parts))
    return report


def _frames(groups: list[ScannedRound]) -> Iterator[Report]:
    for number, scanned in enumerate(groups):
        for frame in scanned.frames:
            yield {
                "sync_round": number,
                "position": frame.position,
                "kind": FrameKind(frame.kind).name.lower(),
                "raft_group": frame.group if _has_group(frame.kind) else None,
                "index": frame.entry_index or None,
                "term": frame.term or None,
                "bytes": frame.size,
                "intact": frame.is_intact,
            }


def _has_group(kind: int) -> bool:
    return kind not in (FrameKind.DIRECTORY, FrameKind.TABLE)


# --- printing ----------------------------------------------------------------------------------


def _print_folder(reports: list[Report], *, as_json: bool) -> None:
    if as_json:
        print_json(reports)
        return
    print_table(
        ("file", "kind", "size", "contents", "state"),
        [
            (
                one["path"],
                one["kind"],
                shown_size(one["bytes"]),
                _contents(one),
                "DAMAGED" if one["damaged"] else "whole",
            )
            for one in reports
        ],
        none="There is no segment and no write-ahead log below this folder.",
    )


def _contents(report: Report) -> str:
    if report["kind"] == "segment":
        first, after = report["base_offset"], report["next_offset"]
        return f"offsets {first} to {after - 1}" if after > first else "nothing yet"
    return f"{sum(report.get('frames', {}).values())} frames"


def _print_file(report: Report, *, as_json: bool) -> None:
    parts = report.pop("parts", [])
    if as_json:
        print_json({**report, "parts": [_for_json(part) for part in parts]})
        return
    for name, value in report.items():
        shown = (
            ", ".join(f"{count} {kind}" for kind, count in value.items())
            if isinstance(value, dict)
            else value
        )
        print(f"{name.replace('_', ' '):<14} {shown}")
    if parts:
        print()
        headings = max(parts, key=len)
        rows = [[_for_table(part.get(name)) for name in headings] for part in parts]
        print_table([name.replace("_", " ") for name in headings], rows, none="")


def _for_json(part: Report) -> Report:
    shown: Report = {}
    for name, value in part.items():
        shown |= text_or_base64(name, value) if isinstance(value, bytes) else {name: value}
    return shown


def _for_table(value: Any) -> Any:
    return readable(value) if isinstance(value, bytes) else value
