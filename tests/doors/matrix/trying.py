"""Every cell of the matrix: a door, a method, a caller, and what is done to what."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from tests.doors.matrix.answers import ANSWER_S_MAX
from tests.doors.matrix.callers import CALLERS
from tests.doors.matrix.expected import Outcome, outcome_of, shown_to
from tests.doors.matrix.gateway_door import GatewayDoor
from tests.doors.matrix.graphql_door import GraphqlDoor
from tests.doors.matrix.grpc_door import GrpcDoor
from tests.doors.matrix.rest_door import RestDoor
from tests.doors.matrix.rows import METHODS, ROWS
from tests.doors.matrix.stream_doors import EventsDoor, GraphqlSubscriptions, SocketDoor
from tests.doors.matrix.wire_door import WireDoor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.doors.matrix.answers import Answer, Door
    from tests.doors.matrix.callers import Caller
    from tests.doors.matrix.rows import Row
    from tests.doors.matrix.world import World

    from angarium.bench.cluster import BenchNode

DOORS: Final[tuple[Any, ...]] = (
    *(WireDoor, GrpcDoor, RestDoor, GatewayDoor, GraphqlDoor),
    *(EventsDoor, SocketDoor, GraphqlSubscriptions),
)

ADMIN: Final = CALLERS[0]

MISSED: Final = frozenset(
    {
        *("fetch", "find_offset", "alter_topic", "delete_topic", "describe_topic"),
        *("describe_group", "alter_group", "seek_group", "pause_group", "delete_group"),
        *("describe_user", "alter_user", "delete_user", "delete_role"),
        *("create_token", "delete_token", "describe_quota"),
    }
)
"""Methods that only find out, or change, what is there: without it they fail for everybody."""

PASSING: Final = frozenset({"NOT_LEADER", "UNREACHABLE", "PROPOSAL_DROPPED", "TRANSACTION_PENDING"})
"""Nothing has happened, and it will be otherwise in a moment. On a busy machine leaders change."""

NOBODY: Final = "absent"
"""What stands in a name for a thing that there is not."""


@dataclass(frozen=True)
class Cell:
    """One thing to try."""

    door: str
    row: Row
    case: str
    caller: Caller

    def __str__(self) -> str:
        return f"{self.door}: {self.row} ({self.case}) by {self.caller.name}"


@dataclass
class Tried:
    """What was found."""

    outcomes: dict[Cell, Outcome] = field(default_factory=dict)
    mismatches: list[str] = field(default_factory=list)
    compared: int = 0
    """Refusals that were held against those for things that there are not."""
    seconds: float = 0.0


def cells() -> Iterator[Cell]:
    """Yield every cell, in the order in which they are tried."""
    for door in DOORS:
        for row in ROWS:
            if door.has(row):
                for case in row.cases:
                    for caller in CALLERS:
                        yield Cell(door.name, row, case, caller)


async def try_all(world: World, nodes: Sequence[BenchNode]) -> Tried:
    """Try every cell, at all doors side by side; with several nodes they take turns."""
    began = time.monotonic()
    tried = Tried()
    async with asyncio.TaskGroup() as tasks:
        for one in DOORS:
            tasks.create_task(_try_door(world, [one(world, node) for node in nodes], tried))
    tried.seconds = time.monotonic() - began
    return tried


async def _try_door(world: World, doors: Sequence[Door], tried: Tried) -> None:
    """Try the cells of one door, one after the other; it is there on every node."""
    try:
        for number, cell in enumerate(cells()):
            if cell.door == doors[0].name:
                turn = number + number // len(CALLERS)  # each caller comes to every node
                await _try(world, doors[turn % len(doors)], cell, tried)
    finally:
        for one in doors:
            await one.close()


async def _try(world: World, door: Door, cell: Cell, tried: Tried) -> None:
    row, caller = cell.row, cell.caller
    names = await world.names(row, cell.case, caller, cell.door)
    given = row.given(names)
    expected = _expected(door, cell, given)
    answer = await _asked(door, caller, row.method, given)
    found = _outcome(row, answer)
    if found is not expected:
        tried.mismatches.append(f"{cell}: {expected} expected, got {found or answer}")
        return
    tried.outcomes[cell] = expected
    if expected is Outcome.ALLOWED:
        world.spent(row, cell.case, cell.door)
        if row.rule.shows is not None:
            there = world.there[row.method]
            if "owner" in given:
                there &= {given["owner"]}
            wanted = shown_to(caller, row.rule, there)
            found_names = (answer.names or frozenset()) & world.there[row.method]
            if found_names != wanted:
                differing = sorted(found_names ^ wanted)
                tried.mismatches.append(f"{cell}: the list differs in {differing}")
    if expected is Outcome.ABSENT:
        tried.compared += 1
        await _compare(door, cell, names, answer, tried)


async def _asked(door: Door, caller: Caller, method: str, given: dict[str, Any]) -> Answer:
    """Ask, and ask again while the cluster is between two leaders: that says nothing of grants."""
    async with asyncio.timeout(ANSWER_S_MAX * 5):
        while True:
            answer = await door.ask(caller, method, given)
            if answer.code not in PASSING:
                return answer
            await asyncio.sleep(0.2)


def _expected(door: Door, cell: Cell, given: dict[str, Any]) -> Outcome:
    caller, row = cell.caller, cell.row
    before = door.before.get(row.method)
    if before is not None:
        (topic,) = given["request"].topics
        outcome = outcome_of(caller, METHODS[before], {"name": topic})
        if outcome is not Outcome.ALLOWED:
            return outcome
    return outcome_of(caller, row.rule, door.meant(row.method, given))


def _outcome(row: Row, answer: Answer) -> Outcome | None:
    if answer.is_less:
        return Outcome.LESS
    if not answer.code or answer.code in row.beyond:
        return Outcome.ALLOWED
    return {
        "PERMISSION_DENIED": Outcome.DENIED,
        "NOT_FOUND": Outcome.ABSENT,
        "UNAUTHENTICATED": Outcome.UNPROVEN,
    }.get(answer.code)


async def _compare(door: Door, cell: Cell, names: Any, answer: Answer, tried: Tried) -> None:
    """Ask for things that there are not, and see that the refusal is the same."""
    row = cell.row
    absent = {
        kind: f"{name}-{NOBODY}"
        for kind in ("topic", "group", "user", "role")
        if (name := getattr(names, kind))
    }
    missing = row.given(replace(names, **absent))
    told = [await _asked(door, cell.caller, row.method, missing)]
    if row.method in MISSED:
        # And so is what somebody is told who may see everything.
        told.append(await _asked(door, ADMIN, row.method, missing))
    for one in told:
        same = one._replace(text=one.text.replace(f"-{NOBODY}", ""))
        if same != answer:
            tried.mismatches.append(f"{cell}: {answer} tells it from what is absent: {one}")
