"""What an audit record says: who, from where, what, on which resource, and which rule decided.

Whatever a caller chose in it is bounded and escaped; none of it is a secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from angarium.api.audit import AuditEvent, AuditOutcome, AuditRecord
from angarium.errors import AngariumError
from angarium.security.audit.times import time_text
from angarium.security.audit.wording import NAME_CHARACTERS_MAX, named, said
from angarium.security.origin import ORIGIN, Origin

if TYPE_CHECKING:
    from angarium.api.access import Action, Principal, Proof, ResourceKind
    from angarium.service.own_node import OwnNode

Question: TypeAlias = "tuple[Action, ResourceKind, str]"
"""What was asked of the table of permissions: an action, and what it is done to."""


class AuditRecords:
    """Makes the records of one node."""

    def __init__(self, node: OwnNode) -> None:
        self._node = node

    def of_call(
        self,
        event: AuditEvent,
        principal: Principal,
        *,
        what: str,
        asked: Question | None,
        rule: str,
        outcome: AuditOutcome = AuditOutcome.ALLOWED,
        details: str = "",
        origin: Origin | None = None,
    ) -> AuditRecord:
        """Return the record of something that a principal asked for."""
        origin = origin or ORIGIN.get()
        action, kind, name = asked or ("", "", "")
        return AuditRecord(
            time=self._time(),
            node=self._node.id,
            event=event,
            outcome=outcome,
            who=named(principal.name),
            proof=principal.proof.value,
            token=named(principal.token or ""),
            address=named(origin.address),
            door=origin.door,
            what=what,
            action=str(action),
            kind=str(kind),
            resource=named(name),
            rule=said(rule),
            details=details,
        )

    def of_login(self, name: str, proof: Proof, why: str, origin: Origin) -> AuditRecord:
        """Return that of somebody who could not prove who it is; `name` is a user's, or empty."""
        return AuditRecord(
            time=self._time(),
            node=self._node.id,
            event=AuditEvent.LOGIN,
            outcome=AuditOutcome.DENIED,
            who=named(name),
            proof=proof.value,
            address=named(origin.address),
            door=origin.door,
            what="login",
            rule=why,
        )

    def of_node(
        self,
        event: AuditEvent,
        what: str,
        *,
        outcome: AuditOutcome = AuditOutcome.ALLOWED,
        kind: str = "",
        resource: str = "",
        details: str = "",
    ) -> AuditRecord:
        """Return that of something that no principal asked for."""
        origin = ORIGIN.get()
        return AuditRecord(
            time=self._time(),
            node=self._node.id,
            event=event,
            outcome=outcome,
            address=named(origin.address),
            door=origin.door,
            what=what,
            kind=kind,
            resource=named(resource),
            details=said(details),
        )

    def of_failure(
        self, record: AuditRecord, error: BaseException, *, is_secret: bool = False
    ) -> AuditRecord:
        """Return that of something that did not succeed, after `record` said that it was let
        through. `is_secret`: what is wrong with it may say something of a secret."""
        code = error.code if isinstance(error, AngariumError) else type(error).__name__
        is_told = isinstance(error, AngariumError) and not is_secret
        return msgspec.structs.replace(
            record,
            time=self._time(),
            outcome=AuditOutcome.FAILED,
            details=said(f"{code}: {error}" if is_told else code),
        )

    def _time(self) -> str:
        return time_text(self._node.now())


def bounded(asked: Question | None) -> tuple[object, ...] | None:
    """Return a question as part of a key: somebody may ask about a name of a megabyte."""
    if asked is None or len(asked[2]) <= NAME_CHARACTERS_MAX:
        return asked
    return (*asked[:2], named(asked[2]))
