"""Who stands in the tables and plots of docs/performance.md, and what is asked of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

Figures = Mapping[str, Mapping[str, Any]]
"""docs/peers.json: an object per key, and `about`."""

OURS: Final = "angarium"
OUR_PROMISE: Final = "a majority has fsynced it (CONSISTENT)"


class Broker(NamedTuple):
    """A broker under one promise."""

    key: str
    name: str
    is_fsynced: bool
    """Whether what a majority acknowledged is on its disks."""


BROKERS: Final = (
    Broker(OURS, "Angarium", is_fsynced=True),
    Broker("nats", "NATS JetStream", is_fsynced=False),
    Broker("nats_synced", "NATS JetStream, synced", is_fsynced=True),
    Broker("redis_always", "Redis Streams, always", is_fsynced=False),
    Broker("redis_everysec", "Redis Streams, everysec", is_fsynced=False),
    Broker("rabbitmq", "RabbitMQ quorum queue", is_fsynced=True),
    Broker("kafka", "Kafka", is_fsynced=False),
    Broker("kafka_flushed", "Kafka, flushed", is_fsynced=True),
)


class Question(NamedTuple):
    """A column of the table, and a plot."""

    key: str
    heading: str
    title: str
    is_less_better: bool = False


QUESTIONS: Final = (
    Question(
        "consistent_batched",
        "batched, records/s",
        "Records per second acknowledged, 8 workers with 2,000 records a call",
    ),
    Question(
        "consistent_60_workers",
        "60 workers, records/s",
        "Records per second acknowledged, 60 workers in one client, each awaiting its own",
    ),
    Question(
        "consistent_60_connections",
        "60 connections, records/s",
        "Records per second acknowledged, 60 workers with a connection each",
    ),
    Question(
        "consistent_one_by_one_p50",
        "one by one, p50 ms",
        "Milliseconds to the acknowledgement of a record alone, p50",
        is_less_better=True,
    ),
    Question(
        "catch_up_records",
        "reading, records/s",
        "Records per second read from a stored topic, as Python objects",
    ),
    Question(
        "end_to_end_p99_ms",
        "to delivery, p99 ms",
        "Milliseconds from due to delivered at 1,000 records/s over 20 topics, p99",
        is_less_better=True,
    ),
    Question(
        "idle_mb", "idle node, MB", "Megabytes of memory of an idle node", is_less_better=True
    ),
)


def figure_of(broker: Broker, question: Question, figures: Figures) -> float | None:
    """Return what was measured, if it was."""
    found = figures.get(question.key, {})
    if broker.key == OURS:
        return found.get("ours")
    beside = found.get("peers", {}).get(broker.key)
    return None if beside is None else beside["figure"]


def measured(figures: Figures) -> list[Broker]:
    """Return the brokers that anything was measured of."""
    return [
        broker
        for broker in BROKERS
        if any(figure_of(broker, question, figures) is not None for question in QUESTIONS)
    ]


def promise_of(broker: Broker, figures: Figures) -> str:
    """Return what an acknowledgement meant."""
    if broker.key == OURS:
        return OUR_PROMISE
    return str(figures["about"]["peers"][broker.key]["promise"])


def written(value: float | None) -> str:
    """Return a figure as people write it."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:,.2f}"
