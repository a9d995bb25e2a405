"""`angarium backup create | list | verify | restore`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from angarium.cli.grammar.words import Words

_CREATE: Final = """\
    angarium backup create /backups/orders
    angarium backup create /backups/orders --format json

Takes every topic with its settings and records, where groups stand, dead letters, users, roles,
grants, tokens and quotas. Of secrets only hashes are there; the files are readable by you alone.
The next backup in the same folder takes only the records that are new. One that is interrupted
counts for nothing, and the next one goes on where it was."""

_VERIFY: Final = """\
    angarium backup verify /backups/orders
    angarium backup verify /backups/orders --number 3

Reads every byte, and names each file that is missing or not what was written: status 1. No cluster
is asked."""

_RESTORE: Final = """\
    angarium backup restore /backups/orders
    angarium backup restore /backups/orders --number 3 --topic orders
    angarium backup restore /backups/orders --resume

Records get the offsets and times that they had, and groups go on where they stood. Topics that
exist are not touched, unless --resume says that they come from a restore of this backup which was
interrupted; what is there is then not written again. Start publishers and consumers afterwards."""


def add(words: Words) -> None:
    """Add the words."""
    family = words.add_family("backup", "make backups of a cluster, and bring one back")

    create = family.add("create", "make a backup", run="backup:create", more=_CREATE)
    _add_folder(create)
    create.add_argument("--no-users", action="store_true", help="leave users and quotas out")

    show = family.add("list", "list the backups of a folder", run="backup:list_all")
    _add_folder(show)

    verify = family.add("verify", "check every byte", run="backup:verify", more=_VERIFY)
    _add_folder(verify)
    _add_number(verify)

    restore = family.add("restore", "bring a backup back", run="backup:restore", more=_RESTORE)
    _add_folder(restore)
    _add_number(restore)
    restore.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="TOPIC",
        help="only this one, and no users; may be given several times",
    )
    restore.add_argument(
        "--resume", action="store_true", help="go on with a restore that was interrupted"
    )
    restore.add_argument(
        "--replication", type=int, metavar="N", help="replicas of each partition (default: as then)"
    )
    restore.add_argument("--no-users", action="store_true", help="leave users and quotas out")


def _add_folder(parser: ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="where the backups lie")


def _add_number(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--number", type=int, metavar="N", help="which backup (default: the latest)"
    )
