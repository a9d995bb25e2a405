"""`angarium cluster rebalance`"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import msgspec

from angarium.cli.complaints import Refusal
from angarium.cli.grammar.quantities import NO_LIMIT, shown_age, shown_size
from angarium.cli.output import print_json, table_lines
from angarium.cli.own_name import own_name
from angarium.cli.screen import Line, Screen
from angarium.cli.session import talk

if TYPE_CHECKING:
    from argparse import Namespace

    from angarium.api.balance import BalanceInfo, MoveInfo
    from angarium.cli.profiles import Choices
    from angarium.client import Client

WATCH_SECONDS = 1.0
"""How often it is asked how far it is."""

MOVES_PRINTED_MAX = 40
"""Moves in a table; how many more there are is said below. `--format json` has more."""

_HEADINGS = ("topic", "partition", "from", "to", "size", "copied")


def rebalance(options: Namespace) -> int:
    """Even out what nodes hold, or show what that would move, or call it off."""
    words = {"--dry-run": options.dry_run, "--cancel": options.cancel, "--auto": options.auto}
    said = [word for word, is_said in words.items() if is_said]
    if len(said) > 1:
        raise Refusal(f"{' and '.join(said)} do not go together: say one of them")
    if said and (options.throttle is not None or options.watch):
        raise Refusal(f"{said[0]} begins nothing: --throttle and --watch do not go with it")

    async def work(client: Client, chosen: Choices) -> int:
        if options.dry_run:
            info = await client.describe_balance()
        elif options.cancel:
            info = await client.cancel_rebalance()
        elif options.auto:
            info = await client.set_auto_balance(automatic=options.auto == "on")
        else:
            info = await _begun(client, options)
            if options.watch:
                info = await _watched(client, info, is_quiet=chosen.is_json)
        if chosen.is_json:
            print_json(msgspec.to_builtins(info))
        elif not options.watch or info.is_running:
            print("\n".join(lines(info)))
        return 0

    return talk(options, work)


async def _begun(client: Client, options: Namespace) -> BalanceInfo:
    if options.watch and options.throttle is None:
        info = await client.describe_balance()
        if info.is_running:  # only looked at: its pace stays
            return info
    throttle = 0 if options.throttle == NO_LIMIT else options.throttle
    return await client.rebalance(bytes_per_s=throttle)


async def _watched(client: Client, info: BalanceInfo, *, is_quiet: bool) -> BalanceInfo:
    """Show how far it is until nothing is left, or somebody calls it off."""
    screen = Screen(sys.stdout) if sys.stdout.isatty() and not is_quiet else None
    last = ""
    while True:
        if screen is not None:
            screen.draw([Line(line) for line in lines(info)])
        elif not is_quiet and (line := headline(info)) != last:
            last = line
            print(line, flush=True)
        if not info.is_running:
            return info
        await asyncio.sleep(WATCH_SECONDS)
        info = await client.describe_balance()


def lines(info: BalanceInfo) -> list[str]:
    """Return how it stands, then the moves."""
    told = [headline(info)]
    if info.waits_for:
        told.append(f"Nothing begins now: {info.waits_for}.")
    if info.moves:
        shown = info.moves[:MOVES_PRINTED_MAX]
        told += ["", *table_lines(_HEADINGS, map(_row, shown))]
        more = info.moves_left - len(shown)
        told += [f"and {more} more"] if more > 0 else []
    return told


def headline(info: BalanceInfo) -> str:
    """Return how it stands, in one line."""
    auto = "; rebalances by itself when nodes change" if info.is_automatic else ""
    if not info.moves_left:
        return f"The cluster is balanced{auto or '; it does not rebalance by itself'}."
    under_way = sum(one.is_under_way for one in info.moves)
    left = f"{_counted(info.moves_left)} left, {shown_size(info.bytes_left)} to copy"
    if not info.is_running:
        begin = f"`{own_name()} cluster rebalance` begins{' now' if info.is_due else ''}"
        back = f", {under_way} on the way{_time(info)}" if under_way else ""
        if info.is_due:
            auto = ", and it does by itself when all nodes have been there for a while"
        return f"Nothing is being rebalanced: {left}{back}; {begin}{auto}."
    pace = f", at {shown_size(info.bytes_per_s)}/s at most" if info.bytes_per_s else ""
    who = "Rebalancing by itself" if info.is_by_itself else "Rebalancing"
    return f"{who}: {left}, {under_way} under way{pace}{_time(info)}{auto}."


def _time(info: BalanceInfo) -> str:
    return "" if info.time_left_ms is None else f", about {shown_age(info.time_left_ms)}"


def _counted(moves: int) -> str:
    return "1 move" if moves == 1 else f"{moves} moves"


def _row(move: MoveInfo) -> tuple[object, ...]:
    leaving = [one for one in move.replicas if one not in move.target]
    arriving = [one for one in move.target if one not in move.replicas]
    if not arriving:
        whom = (f"led by {move.replicas[0]}", f"led by {move.target[0]}")
        return (move.topic, move.partition, *whom, None, None)
    return (
        move.topic,
        move.partition,
        ", ".join(f"node {one}" for one in leaving) or None,
        ", ".join(f"node {one}" for one in arriving),
        shown_size(move.stored_bytes),
        _share(move) if move.is_under_way else "waits",
    )


def _share(move: MoveInfo) -> str:
    if not move.stored_bytes:
        return "0%"
    return f"{min(move.copied_bytes / move.stored_bytes, 1.0):.0%}"
