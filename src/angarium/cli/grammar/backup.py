"""`angarium backup create | list | verify | restore`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from angarium.cli.grammar.words import Words

_STORE: Final = """
A store is a folder, or a bucket of an object store that has S3's API: pip install
'angarium[object-store]'. AWS_ENDPOINT_URL says where it is if it is not AWS's, AWS_ACCESS_KEY_ID
and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, who you are there; AWS_REGION, AWS_SESSION_TOKEN and
AWS_CA_BUNDLE count, too."""

_CREATE: Final = (
    """\
    angarium backup create /backups/orders
    angarium backup create s3://bucket/prefix --format json

Takes every topic with its settings and records, where groups stand, dead letters, users, roles,
grants, tokens and quotas. Of secrets only hashes are there; the files are readable by you alone.
The next backup in the same store takes only the records that are new. One that is interrupted
counts for nothing, and the next one goes on where it was.
"""
    + _STORE
)

_VERIFY: Final = """\
    angarium backup verify /backups/orders
    angarium backup verify /backups/orders --number 3

Reads every byte, and names each file that is missing or not what was written: status 1. No cluster
is asked."""

_RESTORE: Final = """\
    angarium backup restore /backups/orders
    angarium backup restore /backups/orders --number 3 --topic orders
    angarium backup restore /backups/orders --topic orders=orders-then
    angarium backup restore /backups/orders --resume

Records get the offsets and times that they had, and groups go on where they stood. Topics that
exist are not touched, unless --resume says that they come from a restore of this backup which was
interrupted; what is there is then not written again. Start publishers and consumers afterwards."""


def add(words: Words) -> None:
    """Add the words."""
    family = words.add_family("backup", "make backups of a cluster, and bring one back")

    create = family.add("create", "make a backup", run="backup:create", more=_CREATE)
    _add_store(create)
    create.add_argument("--no-users", action="store_true", help="leave users and quotas out")

    show = family.add("list", "list the backups of a store", run="backup:list_all")
    _add_store(show)

    verify = family.add("verify", "check every byte", run="backup:verify", more=_VERIFY)
    _add_store(verify)
    _add_number(verify)

    restore = family.add("restore", "bring a backup back", run="backup:restore", more=_RESTORE)
    _add_store(restore)
    _add_number(restore)
    restore.add_argument(
        "--topic",
        action="append",
        default=[],
        type=_renamed,
        metavar="TOPIC[=NAME]",
        help="only this one, under another name if one is given, and no users; may be given several"
        " times",
    )
    restore.add_argument(
        "--resume", action="store_true", help="go on with a restore that was interrupted"
    )
    restore.add_argument(
        "--replication", type=int, metavar="N", help="replicas of each partition (default: as then)"
    )
    restore.add_argument(
        "--no-regions",
        action="store_true",
        help="leave out what topics say about regions: homes, readers, the witness",
    )
    restore.add_argument("--no-users", action="store_true", help="leave users and quotas out")


def _add_store(parser: ArgumentParser) -> None:
    parser.add_argument(
        "store", metavar="STORE", help="where the backups lie: a folder, or s3://BUCKET/PREFIX"
    )


def _add_number(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--number", type=int, metavar="N", help="which backup (default: the latest)"
    )


def _renamed(text: str) -> tuple[str, str]:
    """Return what a topic is called in the backup, and what it is to be called."""
    old, _, new = text.partition("=")
    return old, new or old
