"""`angarium backup create | list | verify | restore`"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec

from angarium.backup.creating import Creation
from angarium.backup.manifest import loaded, manifest_name, numbers
from angarium.backup.restoring import Restoration
from angarium.backup.store import store_at
from angarium.backup.verifying import verified
from angarium.cli.grammar.quantities import shown_time
from angarium.cli.output import print_json, print_table
from angarium.cli.profiles import choices
from angarium.cli.progress import Progress
from angarium.cli.session import talk
from angarium.errors import CorruptData, NewerRelease

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from angarium.backup.creating import Progress as Reached
    from angarium.backup.manifest import Manifest
    from angarium.cli.profiles import Choices
    from angarium.client import Client


def create(options: Namespace) -> int:
    """Make a backup."""

    async def work(client: Client, chosen: Choices) -> int:
        line = Progress(total_bytes=None, quiet=chosen.is_json)
        creation = Creation(
            client,
            store_at(options.store),
            with_users=not options.no_users,
            told=_shown_on(line),
        )
        try:
            manifest = await creation.run()
        finally:
            line.close()
        if chosen.is_json:
            print_json({**_facts(manifest), "hidden_topics": creation.hidden})
        else:
            print(f"Backup {_told(manifest)}; {manifest.new_bytes:,} bytes are new.")
            _warn_of_hidden(creation.hidden)
        return 0

    return talk(options, work)


def list_all(options: Namespace) -> int:
    """Print the backups of a store."""
    chosen = choices(options)
    store = store_at(options.store)
    found: list[Manifest] = []
    damaged: list[str] = []
    for number in numbers(store):
        try:
            found.append(loaded(store, number))
        except (CorruptData, NewerRelease) as error:
            damaged.append(str(error))
    if chosen.is_json:
        print_json({"backups": [_facts(one) for one in found], "damaged": damaged})
    else:
        print_table(
            ("number", "made", "topics", "records", "bytes", "new bytes"),
            [
                (
                    one.number,
                    shown_time(one.ended_at),
                    len(one.topics),
                    f"{one.records:,}",
                    f"{one.bytes:,}",
                    f"{one.new_bytes:,}",
                )
                for one in found
            ],
            none="There are no backups.",
        )
        for sentence in damaged:
            print(sentence, file=sys.stderr)
    return 1 if damaged else 0


def verify(options: Namespace) -> int:
    """Check every byte of a backup."""
    chosen = choices(options)
    store = store_at(options.store)
    line = Progress(total_bytes=None, quiet=chosen.is_json)
    try:
        manifest, faults = verified(store, options.number, told=line.add)
    finally:
        line.close()
    if chosen.is_json:
        print_json({**_facts(manifest), "faults": faults})
    elif not faults:
        print(f"Every byte of backup {_told(manifest)} is as it was written.")
    for fault in () if chosen.is_json else faults:
        print(fault)
    return 1 if faults else 0


def restore(options: Namespace) -> int:
    """Bring a backup back."""

    async def work(client: Client, chosen: Choices) -> int:
        line = Progress(total_bytes=None, quiet=chosen.is_json)
        restoration = Restoration(
            client,
            store_at(options.store),
            number=options.number,
            only=dict(options.topic),
            resume=options.resume,
            replication=options.replication,
            with_regions=not options.no_regions,
            with_users=not options.no_users,
            told=_shown_on(line),
        )
        try:
            manifest = await restoration.run()
        finally:
            line.close()
        accounts = restoration.accounts
        if chosen.is_json:
            told = None if accounts is None else msgspec.to_builtins(accounts)
            print_json({**_facts(manifest), "restored_records": line.records, "accounts": told})
            return 0
        print(f"Restored {line.records:,} records of backup {_told(manifest)}.")
        if accounts is not None and accounts.kept:
            print(f"These were there, and stay as they are: {', '.join(accounts.kept)}.")
        if accounts is not None and accounts.made:
            print(
                f"{accounts.made} users, roles, grants, tokens or quotas came back that were not"
                " there: also those that were deleted or revoked since the backup. Look through"
                " them; --no-users brings none back."
            )
        return 0

    return talk(options, work)


def _warn_of_hidden(hidden: int | None) -> None:
    """Say that a backup lacks what its maker may not see: nobody would notice before a restore."""
    if hidden:
        print(
            f"{hidden} topics are not in it: you may not see them. Make it as somebody with the"
            " role admin to have all.",
            file=sys.stderr,
        )
    elif hidden is None:
        print(
            "Topics that you may not see are not in it; whether there are any takes"
            " cluster.describe to tell.",
            file=sys.stderr,
        )


def _shown_on(line: Progress) -> Callable[[Reached], None]:
    def told(reached: Reached) -> None:
        line.add(reached.records - line.records, reached.bytes - line.bytes)

    return told


def _told(manifest: Manifest) -> str:
    topics = "1 topic" if len(manifest.topics) == 1 else f"{len(manifest.topics)} topics"
    return f"{manifest.number} ({topics}, {manifest.records:,} records, {manifest.bytes:,} bytes)"


def _facts(manifest: Manifest) -> dict[str, Any]:
    return {
        "number": manifest.number,
        "manifest": manifest_name(manifest.number),
        "cluster": manifest.cluster,
        "release": manifest.release,
        "began_at": manifest.began_at,
        "ended_at": manifest.ended_at,
        "records": manifest.records,
        "bytes": manifest.bytes,
        "new_bytes": manifest.new_bytes,
        "topics": [
            {
                "name": one.name,
                "partitions": [
                    {"number": each.number, "start": each.start, "end": each.end}
                    for each in one.partitions
                ],
            }
            for one in manifest.topics
        ],
    }
