"""`angarium dlq list | show | redrive | purge`"""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from pathlib import Path
from typing import TYPE_CHECKING, Any

from angarium.cli.complaints import Refusal
from angarium.cli.grammar.dlq import letter_id
from angarium.cli.grammar.quantities import shown_time
from angarium.cli.output import print_json, print_table, readable
from angarium.cli.record_lines import record_json
from angarium.cli.session import talk
from angarium.client.dead_letters import DEAD_LETTERS, LetterFilter

if TYPE_CHECKING:
    from argparse import Namespace

    from angarium.cli.profiles import Choices
    from angarium.client import Client
    from angarium.client.dead_letters import DeadLetter, Dealt

VALUE_CHARACTERS = 40
"""How much of a value the list shows."""


def list_all(options: Namespace) -> int:
    """Print letters that nobody has dealt with."""

    async def work(client: Client, chosen: Choices) -> int:
        if options.topic != DEAD_LETTERS:
            await client.describe_topic(options.topic)  # a misspelt one would look like none at all
        letters = client.dead_letters(options.topic).list(_filter(options), count_max=options.max)
        found = [letter async for letter in letters]
        if chosen.is_json:
            print_json([letter_json(letter) for letter in found])
            return 0
        print_table(
            ("letter", "came from", "group", "attempts", "last", "reason", "value"),
            [
                (
                    _shown(letter),
                    f"{letter.topic}/{letter.partition}@{letter.offset}",
                    letter.group,
                    letter.attempts,
                    shown_time(letter.last_at),
                    _shortened(readable(letter.reason.encode())),
                    _shortened(readable(letter.record.value)),
                )
                for letter in found
            ],
            none="There are no dead letters to deal with.",
        )
        return 0

    return talk(options, work)


def show(options: Namespace) -> int:
    """Print one letter."""

    async def work(client: Client, chosen: Choices) -> int:
        letters = client.dead_letters(options.topic)
        letter = await letters.show(*options.letter)
        is_open = await letters.is_open(*options.letter)
        if chosen.is_json:
            print_json({**letter_json(letter), "open": is_open})
            return 0
        facts = {
            "letter": _shown(letter),
            "dealt with": "no" if is_open else "yes",
            "came from": f"{letter.topic}/{letter.partition}@{letter.offset}",
            "group": letter.group,
            "attempts": letter.attempts,
            "first tried": shown_time(letter.first_at),
            "last tried": shown_time(letter.last_at),
            "reason": readable(letter.reason.encode()),
            "key": readable(letter.record.key),
            "value": readable(letter.record.value),
        }
        for name, value in facts.items():
            print(f"{name:<12} {value}")
        for label, content in letter.headers:
            print(f"{'header':<12} {readable(label.encode())}={readable(content)}")
        return 0

    return talk(options, work)


def redrive(options: Namespace) -> int:
    """Send letters back."""
    wanted = _chosen(options)

    async def work(client: Client, chosen: Choices) -> int:
        letters = client.dead_letters(options.topic)
        dealt = await letters.redrive(wanted, dry_run=options.dry_run)
        _print_dealt(dealt, chosen, "sent back", options, wanted)
        return 0

    return talk(options, work)


def purge(options: Namespace) -> int:
    """Let letters be, if the caller means it."""
    wanted = _chosen(options)
    if not options.yes and not options.dry_run:
        _ask_whether_to_purge()

    async def work(client: Client, chosen: Choices) -> int:
        letters = client.dead_letters(options.topic)
        dealt = await letters.purge(wanted, dry_run=options.dry_run)
        _print_dealt(dealt, chosen, "purged", options, wanted)
        return 0

    return talk(options, work)


def letter_json(letter: DeadLetter) -> dict[str, Any]:
    """Return a letter for JSON; times in µs since 1970."""
    return {
        "letter": _shown(letter),
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "group": letter.group,
        "attempts": letter.attempts,
        "reason": letter.reason,
        "first_at": letter.first_at,
        "last_at": letter.last_at,
        "whole": letter.is_whole,
        "record": record_json(letter.record),
    }


def _filter(options: Namespace) -> LetterFilter:
    return LetterFilter(topic=options.from_topic, group=options.group, reason=options.reason)


def _chosen(options: Namespace) -> LetterFilter:
    """Return which letters are meant; all of them only with --all."""
    patterns = (options.from_topic, options.group, options.reason)
    is_filtered = any(one is not None for one in patterns)
    letters = [*options.letters, *([] if options.set is None else _letters_in(options.set))]
    if not letters and not is_filtered and not options.all:
        raise Refusal("which letters? Name some, give a filter such as --group, or --all")
    if options.all and (letters or is_filtered):
        raise Refusal("--all means every letter: leave out the others, or leave out --all")
    return LetterFilter(
        topic=options.from_topic,
        group=options.group,
        reason=options.reason,
        places=frozenset(letters) or None,
    )


def _letters_in(name: str) -> list[tuple[int, int]]:
    """Return the letters in a file, one a line, as `pipeline dead-letters --set` writes them."""
    text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                found.append(letter_id(line.strip()))
            except ArgumentTypeError as wrong:
                raise Refusal(f"{name}, line {number}: {wrong}") from None
    if not found:
        raise Refusal(f"there is no letter in {name}")
    return found


def _print_dealt(
    dealt: Dealt, chosen: Choices, what: str, options: Namespace, wanted: LetterFilter
) -> None:
    skipped = [(f"{number}@{offset}", why) for (number, offset), why in dealt.skipped]
    if chosen.is_json:
        print_json({"letters": dealt.letters, "dry_run": options.dry_run, "skipped": skipped})
        return
    would = "would be " if options.dry_run else ""
    print(f"{dealt.letters} {would}{what}")
    left = len(wanted.places or ()) - dealt.letters - len(skipped)
    if left > 0:
        told = "was dealt with before, or is" if left == 1 else "were dealt with before, or are"
        print(f"{left} of those named {told} none that fits", file=sys.stderr)
    for letter, why in skipped:
        print(f"{letter} skipped: {why}", file=sys.stderr)


def _shown(letter: DeadLetter) -> str:
    partition, offset = letter.place
    return f"{partition}@{offset}"


def _shortened(text: str) -> str:
    return text if len(text) <= VALUE_CHARACTERS else f"{text[: VALUE_CHARACTERS - 1]}…"


def _ask_whether_to_purge() -> None:
    if not sys.stdin.isatty():
        raise Refusal("purged letters are never sent back; use --yes to purge without being asked")
    print("Purged letters are never sent back. Type yes: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != "yes":
        raise Refusal("nothing was purged")
