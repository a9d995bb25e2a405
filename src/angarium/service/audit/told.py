"""What an audit record tells of a call besides its resource: chosen by name, so that a secret that
somebody adds to the contract is left out until somebody says that it is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from angarium.api.access import Grant
from angarium.api.backups import KeptAccounts, KeptPositions
from angarium.security.audit.wording import named, said

if TYPE_CHECKING:
    from collections.abc import Iterable

TOLD: Final = frozenset(
    {
        *("name", "topic", "partition", "partitions", "config", "group", "paused", "start"),
        *("dry_run", "node", "draining", "level", "to", "owner", "user", "roles", "is_locked"),
        *("subject", "subject_kind", "grant", "grants", "until", "about", "wanted", "producer"),
        *("topics", "limits", "cleared", "token", "bytes_per_s", "automatic", "accounts", "kept"),
        *("code", "force"),
    }
)
"""Arguments that are no secret. A `token` is the number of one."""

SECRET: Final = frozenset({"password"})
"""Arguments of which is told that they were there."""


def details_of(given: Mapping[str, Any], *, besides: str = "") -> str:
    """Return what was asked for, as JSON; without what is None, and without the resource."""
    told: dict[str, Any] = {}
    for name, value in given.items():
        if value is None or value == besides:
            continue
        if name in TOLD:
            told[name] = _plain(value)
        elif name in SECRET:
            told[name] = "set"
    if not told:
        return ""
    return said(json.dumps(told, ensure_ascii=False, separators=(",", ":"), default=str))


def has_secret(given: Mapping[str, Any]) -> bool:
    """Tell whether a call carries a secret."""
    return any(given.get(name) is not None for name in SECRET)


def _plain(value: Any) -> Any:
    """Return something that JSON can say: of settings, those that differ from what is usual."""
    if isinstance(value, KeptAccounts | KeptPositions):
        return _kept(value)
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(value[key]) for key in list(value)[:LISTED_MAX]}
    if isinstance(value, list | tuple | set | frozenset):
        return _listed(value)
    if isinstance(value, msgspec.Struct) and not isinstance(value, Grant):
        fields = msgspec.structs.fields(value)
        return {
            one.name: _plain(getattr(value, one.name))
            for one in fields
            if getattr(value, one.name) != one.default
        }
    return value if isinstance(value, bool | int | float) else named(str(value))


def _listed(values: Iterable[Any]) -> list[Any]:
    """Return each once, so that repeating one does not push others out, and how many are left."""
    told = [_plain(one) for one in values]
    once = list({repr(one): one for one in told}.values())
    left = len(once) - LISTED_MAX
    return once if left <= 0 else [*once[:LISTED_MAX], f"… and {left} more"]


def _kept(value: KeptAccounts | KeptPositions) -> Any:
    """Return of a backup whose it is, or who is to be made as what; no hash."""
    if isinstance(value, KeptPositions):
        where = f"{value.topic}/{value.partition}"
        return [where, *_listed([one.group for one in value.positions])]
    users = [f"{one.name}: {', '.join(one.roles)}" for one in value.users]
    counted = ("roles", "grants", "tokens", "quotas")
    return {"users": _listed(users), **{name: len(getattr(value, name)) for name in counted}}


LISTED_MAX: Final = 64
"""Of a longer list the rest is only counted. A token has no more grants than this."""
