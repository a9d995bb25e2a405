"""What is open in somebody's name: streams, connections; and when they have to end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from angarium.api.access import Action, Principal, ResourceKind
from angarium.errors import AngariumError, PermissionDenied, Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from angarium.ids import Micros
    from angarium.security.permissions import Permissions

Question: TypeAlias = tuple[Action, ResourceKind, str]
"""An action, and what it is done to."""


def withdrawn(principal: Principal) -> str:
    """Say that the key is published no more that has signed somebody's proof."""
    return f"the key that signed the proof of {principal.name!r} was taken back; get another one"


@dataclass(eq=False, slots=True)
class _Attendance:
    principal: Principal
    end: Callable[[AngariumError], None]
    asked: tuple[Question, ...]


class Attendances:
    """Everything that is open; each is ended once at the most."""

    def __init__(self) -> None:
        self._open: dict[_Attendance, None] = {}
        self._expiring: dict[_Attendance, Micros] = {}
        self._going: dict[_Attendance, AngariumError] = {}
        """Connections that end in a moment (`see_off`), and why."""

    def __len__(self) -> int:
        return len(self._open)

    def add(
        self,
        principal: Principal,
        end: Callable[[AngariumError], None],
        asked: Iterable[Question],
        permissions: Permissions,
    ) -> Callable[[], None]:
        """Watch something that was opened; the returned callable stops that.

        It is asked for once more: who opened it may have waited since, and a change that came
        meanwhile has found nothing to end.
        """
        attendance = _Attendance(principal, end, tuple(asked))
        self._open[attendance] = None
        if principal.until is not None:
            self._expiring[attendance] = principal.until

        def leave() -> None:
            self._open.pop(attendance, None)
            self._expiring.pop(attendance, None)

        self._ask(attendance, permissions.absence_of(principal), permissions)
        return leave

    def ask_again(self, permissions: Permissions) -> None:
        """End whatever another policy does not allow."""
        absences: dict[Principal, str] = {}
        for one in list(self._open):
            principal = one.principal
            if principal not in absences:
                absences[principal] = permissions.absence_of(principal)
            self._ask(one, absences[principal], permissions)

    def withdraw(self, keys: frozenset[str], permissions: Permissions) -> None:
        """End whatever was opened with a proof that one of these keys has signed."""
        for one in list(self._open):
            if one.principal.key in keys:
                self._ask(one, withdrawn(one.principal), permissions)

    def _ask(self, one: _Attendance, absence: str, permissions: Permissions) -> None:
        if absence:
            why = Unauthenticated(absence)
            if one.asked:
                self._end(one, why)
            else:
                # A connection: its streams are told why they end before it goes, or their
                # users would only see that it is gone, and come again in vain.
                self._going[one] = why
            return
        principal = one.principal
        for action, kind, name in one.asked:
            if not permissions.decide(principal, action, kind, name).is_allowed:
                said = f"{principal.name!r} may not {action} on {kind} {name!r} any more"
                self._end(one, PermissionDenied(said))
                return

    @property
    def is_somebody_going(self) -> bool:
        """Whether there are connections of those who are nobody any more."""
        return bool(self._going)

    def see_off(self) -> None:
        """End the connections of those who are nobody any more."""
        going, self._going = self._going, {}
        for one, why in going.items():
            self._end(one, why)

    def expire(self, now: Micros) -> set[Principal]:
        """End whatever was opened with a proof that has expired; return whose."""
        expired = [one for one, until in self._expiring.items() if until <= now]
        for one in expired:
            said = f"the proof of {one.principal.name!r} has expired; come again with a new one"
            self._end(one, Unauthenticated(said))
        return {one.principal for one in expired}

    def _end(self, one: _Attendance, why: AngariumError) -> None:
        if one in self._open:
            del self._open[one]
            self._expiring.pop(one, None)
            one.end(why)
