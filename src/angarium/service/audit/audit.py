"""What is recorded of calls, and what they wait for.

- An administrative action is carried out only when its record is in the topic. If that takes longer
  than `WAIT_S`, the action is refused (`AuditUnwritable`, nothing has happened), or, by setting,
  goes on with its record in the log of the node.
  One action is carried out first and recorded then: to recover the topic itself when its majority
  is lost. Else nobody could recover anything. The log of the node has its record before.
- Denials, failed logins and access to records cost a look into a table and never wait. What is
  alike is counted (`security.audit.tallies`); what finds no room is dropped, and that is recorded.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec

from angarium.api.access import ResourceKind
from angarium.api.audit import AUDIT_TOPIC, AuditEvent, AuditOutcome, AuditRecord, encoded
from angarium.errors import AngariumError, AuditUnwritable, LimitExceeded
from angarium.node.bindings import written
from angarium.security.audit import Tallies
from angarium.security.audit.wording import said
from angarium.security.origin import ORIGIN
from angarium.service.audit.recording import AuditRecords, bounded
from angarium.service.audit.told import details_of, has_secret
from angarium.service.audit.writing import AuditWriter
from angarium.telemetry.exposition import counter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping

    from angarium.api.access import Action, Decision, Principal, Proof
    from angarium.ids import NodeId
    from angarium.log.successions import Succession
    from angarium.machine.catalog import Node as Member
    from angarium.service.audit.recording import Question
    from angarium.service.broker import Service
    from angarium.telemetry.exposition import Family
    from angarium.wire.operations import JoinAnswer, JoinHeader

WAIT_S: Final = 5.0
"""How long an administrative action waits for its record."""

LOOK_S: Final = 1.0
"""How often to look for counts that are due."""

DAY_MS: Final = 86_400_000

ENDED: Final = "end stream"
"""What is recorded of something open that is not allowed any more."""

_log = logging.getLogger(__name__)


class AuditChoices(NamedTuple):
    """What can be chosen: section `[audit]` of node.toml."""

    is_data_recorded: bool = False
    is_refused_unwritten: bool = True
    """Whether an administrative action that cannot be recorded is refused."""
    retention_days: int = 0
    """0: for ever."""


COUNTED: Final = (AuditEvent.DENIAL, AuditEvent.ACCESS, AuditEvent.LOGIN, AuditEvent.NODE)
"""What may come in floods."""

ACTIONS_OF_ONE_MAX: Final = 256
"""Actions of one principal that wait for their records on a node. One more is refused: some are
allowed to everybody about oneself, and nobody shall fill the queue for the others."""


RECOVERING: Final = "recover_partition"
"""The one call that cannot wait for its record, where it is for the topic of records."""

SPARE: Final = 64
"""Room for records of recoveries where all other room is taken: strangers who try to come in while
the topic cannot be written must not keep its recovery out of it."""


class Asker(Protocol):
    """Somebody in whose name the table is asked: the broker of a principal."""

    @property
    def principal(self) -> Principal:
        """Who asks."""

    def decide(self, action: Action, kind: ResourceKind, name: str) -> Decision:
        """Tell whether the principal may do something, and why."""


class Audit:
    """Records what happens on one node."""

    def __init__(self, service: Service, choices: AuditChoices) -> None:
        self.choices = choices
        days = choices.retention_days
        self.writer = AuditWriter(service, retention_ms=days * DAY_MS if days else None)
        self.records = AuditRecords(service.node)
        # Each has room of its own: strangers' logins push out nobody's denials.
        self._tallies = {event: Tallies(service.node.now) for event in COUNTED}
        self._refused = 0
        self._acting: Counter[str] = Counter()
        """How many actions of a principal wait for their records; nobody is in it with none."""
        service.node.background += [self.writer.run, self._run]

    # --- what is recorded -----------------------------------------------------------------------

    @asynccontextmanager
    async def action(
        self,
        principal: Principal,
        method: str,
        asked: Question,
        *,
        rule: str,
        given: Mapping[str, Any],
    ) -> AsyncIterator[None]:
        """Have an administrative action recorded before it is carried out, and if it fails then.

        What makes the topic writable again is recorded as soon as it is.
        """
        record = self.records.of_call(
            AuditEvent.ACTION,
            principal,
            what=method,
            asked=asked,
            rule=rule,
            details=details_of(given, besides=asked[2]),
        )
        if self._acting[principal.name] >= ACTIONS_OF_ONE_MAX:
            why = f"{ACTIONS_OF_ONE_MAX} of your administrative calls are being recorded"
            raise LimitExceeded("audit_actions_of_one_max", why, retry_after=1.0)
        self._acting[principal.name] += 1
        stored: asyncio.Future[None] | None = None
        try:
            if method == RECOVERING and given.get("topic") == AUDIT_TOPIC:
                stored = self._noted_first(record)
            else:
                await self.written(record)
        finally:
            self._acting[principal.name] -= 1
            if not self._acting[principal.name]:
                del self._acting[principal.name]
        try:
            yield
        except BaseException as error:
            # What is wrong with a password may say something of it.
            spare = 0 if stored is None else SPARE
            self.failed(record, error, is_secret=has_secret(given), spare=spare)
            raise
        if stored is not None:
            await asyncio.wait([stored], timeout=WAIT_S)

    def _noted_first(self, record: AuditRecord) -> asyncio.Future[None]:
        """Leave a record in the log, have it written when that can be, and do not wait for it."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Nobody may look whether it could be written; the log has it.
        stored.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._tell_in_log(record, "what it is written to is being recovered")
        if not self.writer.put(record, stored, spare=SPARE):
            self.writer.dropped(record)
            stored.set_result(None)
        return stored

    async def written(self, record: AuditRecord) -> None:
        """Return when a record is in the topic; raises `AuditUnwritable`, or by setting goes on."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.writer.put(record, done):
            try:
                async with asyncio.timeout(WAIT_S):
                    await done
                return
            except AuditUnwritable:
                why = "refused by the topic"
            except TimeoutError:
                why = f"not written within {WAIT_S:g} s"
        else:
            why = "too many wait already"
        self._refused += self.choices.is_refused_unwritten
        self._tell_in_log(record, why)
        if self.choices.is_refused_unwritten:
            error = AuditUnwritable(
                f"nothing was done: the audit record of it was {why}, and without one no"
                " administrative action is carried out; try again. If most replicas of"
                f" {AUDIT_TOPIC} are gone for good, recover that topic first"
            )
            self.failed(record, error)
            raise error

    def failed(
        self,
        record: AuditRecord,
        error: BaseException,
        *,
        is_secret: bool = False,
        spare: int = 0,
    ) -> None:
        """Record that something did not succeed which had been let through."""
        self.put(self.records.of_failure(record, error, is_secret=is_secret), spare=spare)

    def put(self, record: AuditRecord, *, spare: int = 0) -> None:
        """Have a record written, without waiting: for what must not be lost in silence."""
        if not self.writer.put(record, spare=spare):
            self.writer.dropped(record)
            self._tell_in_log(record, "too many wait already")

    def denied(self, asker: Asker, method: str, asked: Question) -> None:
        """Record that something was not allowed."""
        self._tally(AuditEvent.DENIAL, AuditOutcome.DENIED, asker, method, asked)

    def accessed(self, asker: Asker, method: str, asked: Question) -> None:
        """Record that somebody reads or publishes."""
        self._tally(AuditEvent.ACCESS, AuditOutcome.ALLOWED, asker, method, asked)

    def watching(
        self,
        principal: Principal,
        asked: Iterable[Question],
        end: Callable[[AngariumError], None],
    ) -> Callable[[AngariumError], None]:
        """Return `end`, which ends something that is open, and records that it was not allowed any
        more: in the name of who opened it, and from there."""
        first, origin = next(iter(asked), None), ORIGIN.get()

        def ended(why: AngariumError) -> None:
            def make() -> AuditRecord:
                return self.records.of_call(
                    AuditEvent.DENIAL,
                    principal,
                    outcome=AuditOutcome.DENIED,
                    what=ENDED,
                    asked=first,
                    rule=str(why),
                    origin=origin,
                )

            self._note(AuditEvent.DENIAL, (ENDED, principal, bounded(first), origin), make)
            end(why)

        return ended

    def login_failed(self, name: str, proof: Proof, why: str) -> None:
        """Record that somebody could not prove who it is.

        `name` is that of a user, or empty. What else was told as a name is kept to nobody: people
        type passwords there.
        """
        origin, why = ORIGIN.get(), said(why)
        self._note(
            AuditEvent.LOGIN,
            (name, proof, why, origin),
            lambda: self.records.of_login(name, proof, why, origin),
        )

    def joined(
        self, wish: JoinHeader, answer: JoinAnswer | AngariumError, known: Member | None = None
    ) -> None:
        """Record that a node came in, or was not let in, and where it was `known` to be before.

        Nothing waits for it: a node that replaces another one may be what the topic lacks. One that
        was told to ask again, because the cluster cannot say yet, was not turned away.
        """
        if isinstance(answer, AngariumError) and answer.retriable:
            return
        node = wish.node if isinstance(answer, AngariumError) else answer.node
        record = self.records.of_node(
            AuditEvent.NODE,
            "join",
            kind="node",
            resource="" if node is None else str(node),
            details=_where(wish.addresses, before=() if known is None else known.addresses),
        )
        if not isinstance(answer, AngariumError):
            self.put(record)
            return
        why = said(str(answer))
        record = msgspec.structs.replace(record, outcome=AuditOutcome.DENIED, rule=why)
        self._note(AuditEvent.NODE, (record.resource, why, record.address), lambda: record)

    def moved(
        self, node: NodeId, before: tuple[tuple[str, str], ...], after: tuple[tuple[str, str], ...]
    ) -> None:
        """Record that this node is registered at other addresses."""
        self.put(
            self.records.of_node(
                AuditEvent.NODE,
                "change addresses",
                kind="node",
                resource=str(node),
                details=_where(after, before=before),
            )
        )

    def turned_away(self, what: str, why: AngariumError) -> None:
        """Record that somebody was not taken for a node, before it could ask for anything."""
        record = self.records.of_node(AuditEvent.NODE, what, outcome=AuditOutcome.DENIED)
        record = msgspec.structs.replace(record, rule=said(str(why)))
        self._note(AuditEvent.NODE, (what, record.rule, record.address), lambda: record)

    def certificates_changed(self, outcome: str) -> None:
        """Record that this node took new certificate files, or could not use them."""
        is_taken = outcome == "taken"
        self.put(
            self.records.of_node(
                AuditEvent.CERTIFICATE,
                "take certificates",
                outcome=AuditOutcome.ALLOWED if is_taken else AuditOutcome.FAILED,
            )
        )

    async def recovered(self, name: str, *, is_first: bool) -> None:
        """Record that this node makes somebody an administrator; raises `AuditUnwritable`."""
        what = "make the first administrator" if is_first else "recover an administrator"
        why = "the cluster was formed" if is_first else "a file in the data folder said so"
        await self.written(
            self.records.of_node(
                AuditEvent.RECOVERY, what, kind=ResourceKind.USER, resource=name, details=why
            )
        )

    async def catalog_recovered(self, found: Succession) -> None:
        """Record that the cluster went on with this node's catalog, or that this node followed.

        Returns when the record is stored: the topic often has to be recovered itself before that.
        Raises `AuditUnwritable` if it has to be tried again.
        """
        what = "follow a recovered catalog" if found.follows else "recover the catalog"
        told = {
            "previous": found.previous,
            "by": found.by,
            "code": found.code,
            **({} if found.follows else {"end": f"{found.last_term}.{found.alone_from}"}),
        }
        record = self.records.of_node(
            AuditEvent.RECOVERY,
            what,
            kind=ResourceKind.CLUSTER,
            resource=found.cluster,
            details=said(json.dumps(told, separators=(",", ":"))),
        )
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self.writer.put(record, stored, spare=SPARE):
            raise AuditUnwritable("too many records wait already")
        await stored

    # --- running --------------------------------------------------------------------------------

    async def close(self) -> None:
        """Write what was counted and what waits, for a moment."""
        self._tell_due(is_last=True)
        await self.writer.close()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            self._tell_due()

    def _tell_due(self, *, is_last: bool = False) -> None:
        for tallies in self._tallies.values():
            for record in tallies.due(is_last=is_last):
                self._put_or_drop(record)

    def families(self) -> Iterator[Family]:
        """Return metrics."""
        yield from self.writer.families()
        yield counter(
            "angarium_audit_coalesced_total",
            "Denials, failed logins and accesses that were counted in another one's record.",
            sum(one.coalesced for one in self._tallies.values()),
        )
        yield counter(
            "angarium_audit_refused_actions_total",
            "Administrative actions that were refused because they could not be recorded.",
            self._refused,
        )

    # --- inside ---------------------------------------------------------------------------------

    def _tally(
        self,
        event: AuditEvent,
        outcome: AuditOutcome,
        asker: Asker,
        method: str,
        asked: Question,
    ) -> None:
        principal = asker.principal

        def make() -> AuditRecord:
            rule = asker.decide(*asked).why
            return self.records.of_call(
                event, principal, outcome=outcome, what=method, asked=asked, rule=rule
            )

        self._note(event, (principal, method, bounded(asked), ORIGIN.get()), make)

    def _note(
        self, event: AuditEvent, key: tuple[Any, ...], make: Callable[[], AuditRecord]
    ) -> None:
        record = self._tallies[event].noted((event, *key), make)
        if record is not None:
            self._put_or_drop(record)

    def _put_or_drop(self, record: AuditRecord) -> None:
        if not self.writer.put(record):
            self.writer.dropped(record)

    def _tell_in_log(self, record: AuditRecord, why: str) -> None:
        """Leave in the log what is not, or not yet, in the topic."""
        extra = {"reason": why, "record": encoded(record).decode()}
        _log.warning("an administrative action has no audit record", extra=extra)


def _where(addresses: tuple[tuple[str, str], ...], *, before: tuple[tuple[str, str], ...]) -> str:
    """Return the addresses of a node in words, and those that it had before if it moves."""
    is_same = not before or sorted(before) == sorted(addresses)
    return written(addresses) if is_same else f"{written(addresses)}, before: {written(before)}"
