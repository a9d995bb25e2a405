"""What a node counts of records, groups and transactions, as metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.telemetry.exposition import Family, Sample, counter, gauge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.telemetry.meters import Meters


def meter_families(meters: Meters) -> Iterator[Family]:
    """Yield the families."""
    total = meters.total
    yield counter("angarium_published_records_total", "Records acknowledged.", total.published)
    yield counter(
        "angarium_published_bytes_total", "Bytes of their batches.", total.published_bytes
    )
    yield counter(
        "angarium_publish_failures_total",
        "Publishes that were refused or whose outcome is unknown.",
        total.failed,
    )
    yield counter(
        "angarium_delivered_records_total",
        "Records handed to subscribers and members of groups.",
        total.delivered,
    )
    yield gauge("angarium_subscribers", "Subscriptions and group members.", total.subscribers)
    yield counter(
        "angarium_duplicate_batches_total",
        "Batches that had been stored before: repetitions that were recognised.",
        meters.duplicates,
    )
    yield gauge("angarium_group_members", "Members of groups, here.", meters.members)
    yield counter(
        "angarium_group_redelivered_records_total",
        "Records handed to members again.",
        meters.redelivered,
    )
    yield Family(
        "angarium_group_settled_records_total",
        "counter",
        "Records that members have said something about, by what.",
        tuple(Sample(count, (("verb", verb),)) for verb, count in meters.settled_by_verb.items()),
    )
    yield Family(
        "angarium_transactions_total",
        "counter",
        "Transactions that ended, and publishes under producers' own numbers.",
        tuple(
            Sample(count, (("outcome", outcome),)) for outcome, count in meters.decisions.items()
        ),
    )
