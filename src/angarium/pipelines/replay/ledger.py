"""Where replays are written down: a small topic of the cluster that they write to.

The first plan of a name is the plan. How far a replay has come is only a hint that spares time:
portions that were written before are recognised without it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.errors import AlreadyExists, InvalidArgument
from angarium.pipelines.replay.plan import Plan

if TYPE_CHECKING:
    from angarium.client import SyncClient

LEDGER_TOPIC: Final = "angarium-replays"
"""Plans, and every few seconds of a replay a line that says how far it is. Never removed."""


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    plan: Plan | None = None
    done: int = 0
    """Portions that are written."""


class Ledger:
    """The replays of a cluster."""

    def __init__(self, client: SyncClient) -> None:
        self._client = client
        with suppress(AlreadyExists):
            client.create_topic(LEDGER_TOPIC, partitions=1)

    def found(self, name: str) -> tuple[Plan, int] | None:
        """Return the plan of a replay and how many portions are known to be written."""
        plan: Plan | None = None
        done = 0
        for record in self._client.read(LEDGER_TOPIC):
            if record.key != name.encode():
                continue
            line = msgspec.json.decode(record.value or b"", type=_Line)
            plan = plan or line.plan
            done = max(done, line.done)
        return None if plan is None else (plan, done)

    def agree_on(self, plan: Plan) -> tuple[Plan, int]:
        """Write a plan down unless there is one; return the one that holds, and how far it is.

        `InvalidArgument` if the one that holds is for something else.
        """
        found = self.found(plan.name)
        if found is None:
            self._write(_Line(plan.name, plan=plan))
            # Somebody else may have done so at the same moment: the first one holds.
            found = self.found(plan.name)
            assert found is not None
        held = found[0]
        if _source(held) != _source(plan) or held.into != plan.into:
            raise InvalidArgument(
                f"the replay {plan.name} is of {held.topic} into {held.into}: give this one an id "
                "of its own"
            )
        return found

    def note(self, name: str, done: int) -> None:
        """Write down how many portions are written."""
        self._write(_Line(name, done=done))

    def _write(self, line: _Line) -> None:
        self._client.publish(LEDGER_TOPIC, msgspec.json.encode(line), key=line.name)


def _source(plan: Plan) -> tuple[str, str, str | None]:
    return plan.cluster, plan.topic, plan.lake
