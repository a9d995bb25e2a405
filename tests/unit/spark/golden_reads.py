"""The golden table of batch reads: options on one side, what is read or refused on the other.

It is asked of the planner alone, and of a real Spark with a real broker behind it. These are the
topics: *orders* has the offsets 0 to 9 in partition 0, the first half of them from the first
moment and the rest from the second one, and 5 to 14 in partition 1, all from the second moment,
because older ones are gone; *returns* has three records, *empty* none, and *angarium-own* seven.
The group *readers* has come to offset 4 of partition 0 of orders. In options `<first>`, `<second>`,
`<between>` them and `<later>` stand for times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from angarium.errors import InvalidArgument, NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

Range: TypeAlias = tuple[str, int, int, int]
"""Topic, partition, first offset and the one behind the last."""

BOTH: list[Range] = [("orders", 0, 0, 10), ("orders", 1, 5, 15)]

READS: list[tuple[dict[str, str], list[Range]]] = [
    ({"subscribe": "orders"}, BOTH),
    ({"subscribe": "empty"}, []),
    ({"subscribe": "orders,returns"}, [*BOTH, ("returns", 0, 0, 3)]),
    ({"subscribePattern": "o.*|r.*"}, [*BOTH, ("returns", 0, 0, 3)]),
    ({"subscribePattern": "order"}, []),
    ({"subscribePattern": ".*own"}, []),
    ({"subscribePattern": "angarium-o.*"}, [("angarium-own", 0, 0, 7)]),
    ({"assign": '{"orders":[1]}'}, [("orders", 1, 5, 15)]),
    (
        {"subscribe": "orders", "startingOffsets": '{"orders":{"0":3,"1":-2}}'},
        [("orders", 0, 3, 10), ("orders", 1, 5, 15)],
    ),
    (
        {"subscribe": "orders", "endingOffsets": '{"orders":{"0":3,"1":-1}}'},
        [("orders", 0, 0, 3), ("orders", 1, 5, 15)],
    ),
    (
        {
            "subscribe": "orders",
            "startingOffsets": '{"orders":{"0":4,"1":9}}',
            "endingOffsets": '{"orders":{"0":4,"1":10}}',
        },
        [("orders", 1, 9, 10)],
    ),
    (
        {"subscribe": "orders", "startingTimestamp": "<second>"},
        [("orders", 0, 5, 10), ("orders", 1, 5, 15)],
    ),
    (
        {"subscribe": "orders", "startingTimestamp": "<between>"},
        [("orders", 0, 5, 10), ("orders", 1, 5, 15)],
    ),
    ({"subscribe": "orders", "endingTimestamp": "<second>"}, [("orders", 0, 0, 5)]),
    ({"subscribe": "orders", "endingTimestamp": "<later>"}, BOTH),
    (
        {
            "subscribe": "orders",
            "startingOffsetsByTimestamp": '{"orders":{"0":<second>,"1":<first>}}',
        },
        [("orders", 0, 5, 10), ("orders", 1, 5, 15)],
    ),
    (
        {
            "subscribe": "orders",
            "endingOffsetsByTimestamp": '{"orders":{"0":<second>,"1":<later>}}',
        },
        [("orders", 0, 0, 5), ("orders", 1, 5, 15)],
    ),
    (
        {
            "subscribe": "orders",
            "startingTimestamp": "<later>",
            "startingOffsetsByTimestampStrategy": "latest",
        },
        [],
    ),
    ({"subscribe": "orders", "startingTimestamp": "<second>", "endingTimestamp": "<first>"}, []),
    (
        {"subscribe": "orders", "startingOffsets": "committed", "groupId": "readers"},
        [("orders", 0, 4, 10), ("orders", 1, 5, 15)],
    ),
    ({"subscribe": "orders", "maxRecordsPerPartition": "3"}, BOTH),
    ({"subscribe": "orders", "minPartitions": "7"}, BOTH),
    ({"subscribe": "orders", "readFrom": "nearest"}, BOTH),
]

REFUSALS: list[tuple[dict[str, str], type[Exception], str]] = [
    (
        {"subscrbe": "orders"},
        InvalidArgument,
        "no option subscrbe for a batch read; did you mean subscribe?",
    ),
    (
        {"subscribe": "orders", "assign": '{"orders":[0]}'},
        InvalidArgument,
        "subscribe and assign contradict each other",
    ),
    (
        {"subscribe": "orders", "startingOffsets": "latest"},
        InvalidArgument,
        "cannot start at 'latest'",
    ),
    (
        {"subscribe": "orders", "maxOffsetsPerTrigger": "1"},
        InvalidArgument,
        "maxOffsetsPerTrigger is not for a batch read",
    ),
    ({"subscribe": "orders,gone"}, NotFound, "no topic gone"),
    ({"assign": '{"orders":[0,2]}'}, NotFound, "no partition 2 of a topic orders"),
    (
        {"subscribe": "orders", "startingTimestamp": "<later>"},
        InvalidArgument,
        "startingTimestamp: orders partition 0, orders partition 1 has no record that is so",
    ),
    (
        {"subscribe": "orders", "startingOffsets": '{"orders":{"0":3}}'},
        InvalidArgument,
        "startingOffsets says nothing about orders partition 1",
    ),
    (
        {"subscribe": "orders", "endingOffsets": '{"orders":{"0":3,"1":7},"returns":{"0":1}}'},
        InvalidArgument,
        "endingOffsets speaks of returns partition 0, which is not read",
    ),
    (
        {
            "subscribe": "returns",
            "startingOffsets": '{"returns":{"0":2}}',
            "endingOffsets": '{"returns":{"0":1}}',
        },
        InvalidArgument,
        "startingOffsets (2) lies behind endingOffsets (1) in returns partition 0",
    ),
]

LOSSES: list[tuple[dict[str, str], str, list[Range]]] = [
    (
        {"startingOffsets": '{"orders":{"0":0,"1":2}}'},
        "orders partition 1 begins at 5, not at 2",
        BOTH,
    ),
    (
        {"endingOffsets": '{"orders":{"0":11,"1":15}}'},
        "orders partition 0 ends at 10, not at 11",
        BOTH,
    ),
    (
        {"startingOffsets": '{"orders":{"0":12,"1":5}}'},
        "orders partition 0 ends at 10, not at 12",
        [("orders", 1, 5, 15)],
    ),
]
"""Records that are gone: what is said, and what is left with failOnDataLoss=false."""


def at(given: Mapping[str, str], moments: Mapping[str, int]) -> dict[str, str]:
    """Return options with the times (ms) that their words stand for."""
    options = dict(given)
    for word, moment in moments.items():
        options = {name: text.replace(f"<{word}>", str(moment)) for name, text in options.items()}
    return options
