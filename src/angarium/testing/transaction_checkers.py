"""The checks on transactions: parts of C1 (nothing is lost) and C6 (nothing is there twice).

A transaction is whole or absent in every partition it touches, and of several that send the same
dead letter back one at most takes effect.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from angarium.testing.history import SENT_BACK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.testing.history import FinalLog, History, Transaction


def c1_transactions_are_whole(history: History) -> Iterator[str]:
    """A committed transaction is in each of its partitions, in one piece; an aborted one in none.

    One whose fate nobody learned is whole or absent, too.
    """
    for log in history.final:
        offsets_of = {record.value: record.offset for record in log.records}
        for one in history.transactions:
            for value in one.dropped.get(log.group, ()):
                if value in offsets_of:
                    yield f"node {log.node} group {log.group}: {value!r} was left out of a commit"
            if log.group in one.values:
                fault = _fault_of(one, log, offsets_of)
                if fault is not None:
                    yield f"node {log.node} group {log.group}: {one.values[log.group][0]!r} {fault}"


def c1_transactions_come_to_light_at_once(history: History) -> Iterator[str]:
    """Nowhere and never does a partition end, for its readers, in the middle of a transaction."""
    for one in history.transactions:
        for group, (base, past, _) in one.placed.items():
            if inside := [end for end in history.ends[group] if base < end < past]:
                yield f"group {group}: {one.name} {one.sequence} could be read up to {inside[0]}"


def c6_each_letter_is_sent_back_once(history: History) -> Iterator[str]:
    """Of all transactions that send the same dead letter back, one at most is committed."""
    committed: dict[bytes, set[bytes]] = defaultdict(set)
    for one in history.transactions:
        if one.committed:
            for value in (value for values in one.values.values() for value in values):
                if value.startswith(SENT_BACK):
                    committed[value.split(b".")[1]].add(value)
    for log in history.final:
        for record in log.records:
            if record.value.startswith(SENT_BACK):
                committed[record.value.split(b".")[1]].add(record.value)
    for letter, values in committed.items():
        if len(values) > 1:
            yield f"dead letter {letter.decode()} was sent back as {sorted(values)}"


def _fault_of(one: Transaction, log: FinalLog, offsets_of: dict[bytes, int]) -> str | None:
    """Say what is wrong with a transaction in one log, if anything is."""
    offsets = [offsets_of.get(value) for value in one.values[log.group]]
    found = [offset for offset in offsets if offset is not None]
    base, past, _ = one.placed.get(log.group, (None, None, 0))
    if not found:
        # Where nobody learned its offset, it may have been below the start.
        trimmed = log.start > 0 if past is None else past <= log.start
        return "was committed and is lost" if one.committed and not trimmed else None
    if one.committed is False:
        return "was aborted and is there"
    missing = len(offsets) - len(found)
    # Only from the left, by a trim, may anything be missing.
    if offsets[missing:] != list(range(found[0], found[0] + len(found))):
        return f"is in pieces, at {offsets}"
    if missing and not 0 < log.start == found[0]:
        return f"is there in part, at {offsets}"
    if base is not None and found[0] != base + missing:
        return f"was told to be at {base} and is at {found[0] - missing}"
    return None
