"""`angarium quota set | list | show | delete`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from angarium.api.quotas import UNLIMITED, QuotaKind, QuotaSubject
from angarium.cli.complaints import Refusal
from angarium.cli.grammar.quantities import shown_size
from angarium.cli.grammar.quota import CLEARED
from angarium.cli.output import print_json, print_table
from angarium.cli.session import talk

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from angarium.api.quotas import QuotaInfo
    from angarium.cli.profiles import Choices
    from angarium.client import Client

_IN_BYTES = frozenset({QuotaKind.BYTES_IN, QuotaKind.BYTES_OUT, QuotaKind.STORED_BYTES})


def set_limits(options: Namespace) -> int:
    """Set limits."""
    kind, subject = quota_subject_in(options.subject)
    given = {one: getattr(options, one.value) for one in QuotaKind}
    limits = {one: amount for one, amount in given.items() if amount not in {None, CLEARED}}
    cleared = tuple(one for one, amount in given.items() if amount == CLEARED)
    if not limits and not cleared:
        raise Refusal("say what is limited, as --bytes-in 10MB; --help has all there is")

    async def work(client: Client, chosen: Choices) -> int:
        info = await client.set_quota(kind, subject, limits, cleared=cleared)
        print_quotas([info] if info.limits else [], chosen)
        return 0

    return talk(options, work)


def list_all(options: Namespace) -> int:
    """Print every quota."""

    async def work(client: Client, chosen: Choices) -> int:
        print_quotas(await client.list_quotas(), chosen)
        return 0

    return talk(options, work)


def show(options: Namespace) -> int:
    """Print what counts for somebody, and how much of it is used."""
    kind, subject = quota_subject_in(options.subject)

    async def work(client: Client, chosen: Choices) -> int:
        info = await client.describe_quota(kind, subject)
        if chosen.is_json:
            print_json(msgspec.to_builtins(info))
        elif not info.counts:
            print_quotas([info], chosen)
        else:
            print_table(
                ("limit", "amount", "used", "from"),
                [
                    (
                        one.kind.value,
                        "unlimited" if one.limit is None else shown_amount(one.kind, one.limit),
                        shown_amount(one.kind, round(one.used)),
                        one.why,
                    )
                    for one in info.counts
                ],
                none="Nothing is limited.",
            )
        return 0

    return talk(options, work)


def delete(options: Namespace) -> int:
    """Say nothing any more."""
    kind, subject = quota_subject_in(options.subject)

    async def work(client: Client, _: Choices) -> int:
        await client.delete_quota(kind, subject)
        return 0

    return talk(options, work)


def quota_subject_in(text: str) -> tuple[QuotaSubject, str]:
    """Read whose a quota is."""
    word, colon, name = text.partition(":")
    if text == QuotaSubject.DEFAULT.value:
        return QuotaSubject.DEFAULT, ""
    if not colon or word not in set(QuotaSubject) or word == QuotaSubject.DEFAULT:
        raise Refusal(f"{text!r} is none of user:NAME, role:NAME, default and topic:PREFIX")
    kind = QuotaSubject(word)
    if kind is QuotaSubject.TOPIC and name:
        return kind, name.removesuffix("*")
    if not name:
        raise Refusal(f"{text!r} names nobody; topic:* is every topic")
    return kind, name


def print_quotas(quotas: Sequence[QuotaInfo], chosen: Choices) -> None:
    """Print quotas, a line for each."""
    if chosen.is_json:
        print_json(msgspec.to_builtins(quotas))
        return
    print_table(
        ("whose", "limits"),
        [(shown_subject(one), shown_limits(one)) for one in quotas],
        none="There are no quotas.",
    )


def shown_subject(quota: QuotaInfo) -> str:
    """Return whose a quota is, as `quota_subject_in` reads it."""
    if quota.subject_kind is QuotaSubject.DEFAULT:
        return "default"
    end = "*" if quota.subject_kind is QuotaSubject.TOPIC else ""
    return f"{quota.subject_kind}:{quota.subject}{end}"


def shown_limits(quota: QuotaInfo) -> str:
    """Return the limits of a quota in one line."""
    return ", ".join(
        f"{kind.value} {shown_amount(kind, amount)}"
        for kind in QuotaKind
        if (amount := quota.limits.get(kind)) is not None
    )


def shown_amount(kind: QuotaKind, amount: int) -> str:
    """Return a limit, or what is used of it."""
    if amount == UNLIMITED:
        return "unlimited"
    return shown_size(amount) if kind in _IN_BYTES else str(amount)
