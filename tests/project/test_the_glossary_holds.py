"""One word, one thing: docs/concepts/glossary.md, and the identifiers in src, agree.

Identifiers are taken from the syntax tree, so that prose and strings may say what they like.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCE: Final = ROOT / "src"
GLOSSARY: Final = ROOT / "docs" / "concepts" / "glossary.md"


class Banned(NamedTuple):
    """A word that identifiers do not have."""

    words: frozenset[str]
    instead: str


BANNED: Final = (
    Banned(
        frozenset({"place", "places"}),
        "a pair of topic and number is a TopicPartition, where to read from is a Start, a record"
        " has an offset, an entry an index, a byte a position, an item of a list an `at` or `row`",
    ),
    Banned(
        frozenset({"desk", "desks"}), "name a class by what it does: Topics, Publishing, GroupCalls"
    ),
)

BARE: Final = {
    "Identity": "who a producer is: ProducerIdentity; whose a data folder is: FolderIdentity",
    "Identities": "say whose: ProducerIdentities",
    "GroupId": "a group is a consumer group, known by its name; Raft's are RaftGroupId",
    "Part": "a part is one of a stage or a snapshot; a member has an Attachment to a partition",
    "until_consumed": "the setting is called retention_groups everywhere",
}
"""Names that say too little when they stand alone."""

IDENTITY: Final = frozenset({"identity", "identities"})
WHOSE_IDENTITY: Final = re.compile(r"[A-Z]\w+Identit(y|ies)\b")

ONE_MODULE_EACH: Final = frozenset({"reading.py", "records.py", "values.py", "limits.py"})
"""Modules of which there is one: in the room where the name says it all."""

NO_MODULE: Final = frozenset(
    f"{name}.py"
    for name in ("desk", "place", "part", "utils", "helpers", "common", "misc", "manager")
)

EXCEPTIONS: Final = {
    ("angarium/api/dead_letters.py", "place"): "public: DeadLetter.place",
    ("angarium/api/dead_letters.py", "places"): "public: LetterFilter.places",
    ("angarium/client/dead_letters.py", "place"): "uses DeadLetter.place",
    ("angarium/service/dead_letters.py", "place"): "uses DeadLetter.place",
    ("angarium/doors/http/dead_letter_routes.py", "place"): "uses DeadLetter.place",
    ("angarium/doors/http/dead_letter_routes.py", "places"): "uses LetterFilter.places",
    ("angarium/cli/commands/dlq.py", "place"): "uses DeadLetter.place",
    ("angarium/cli/commands/dlq.py", "places"): "uses LetterFilter.places",
    ("angarium/machine/catalog/values.py", "until_consumed"): "a column, named in golden data",
    ("angarium/node/retention.py", "until_consumed"): "reads that column",
    ("angarium/machine/snapshots.py", "Part"): "of a snapshot",
    ("angarium/machine/catalog/state.py", "Part"): "of a snapshot",
    ("angarium/machine/group_frames.py", "Part"): "of a snapshot",
    ("angarium/machine/partition_state.py", "Part"): "of a snapshot",
}
"""By file and identifier, why it may stand all the same."""

ROW: Final = re.compile(
    r"^\| (?!word \||---)([^|]+) \| ([^|]+) \| ([^|]+) \| ?([^|]*)\|$", re.MULTILINE
)
OWNER: Final = re.compile(r"`(\w+)` in `(\w+)`|`(\w+)`")


def test_no_identifier_says_a_word_that_means_something_else() -> None:
    found = sorted({*_banned(), *_bare(), *_identities()})
    assert not found, "docs/concepts/glossary.md has the word to use.\n" + "\n".join(found)


def test_no_two_modules_share_a_name_that_says_little() -> None:
    homes = defaultdict(list)
    for path in _clean_modules():
        homes[path.name].append(str(path.relative_to(SOURCE)))
    shared = [homes[name] for name in sorted(ONE_MODULE_EACH) if len(homes[name]) > 1]
    assert not shared, f"rename all but one of these to what they hold: {shared}"
    empty = [homes[name] for name in sorted(NO_MODULE) if name in homes]
    assert not empty, f"rename these to what they hold: {empty}"


def test_every_exception_is_still_one() -> None:
    stale = [
        f"{file}: {name}" for file, name in EXCEPTIONS if name not in _identifiers(SOURCE / file)
    ]
    assert not stale, f"take these out of EXCEPTIONS: {stale}"


def test_every_word_stands_in_the_glossary_once() -> None:
    words = [(word.strip(), what.strip()) for word, what, _, _ in _rows()]
    assert len(words) > 40, "the tables of the glossary are not read any more"
    # A position is the only word with two meanings: that of a group, and that of a byte.
    twice = {word for word, _ in words if [one for one, _ in words].count(word) > 1}
    assert twice == {"position"}


def test_every_word_has_an_owner() -> None:
    missing = []
    for word, _, owner, _ in _rows():
        found = OWNER.fullmatch(owner.strip())
        assert found is not None, f"{word}: the owner is a `Type` in a `room`, or a `room`"
        if not _is_there(found[1], found[2] or found[3]):
            missing.append(f"{word}: {owner}")
    assert not missing, f"the glossary names owners that are not there: {missing}"


# --- what is read ---------------------------------------------------------------------------------


def _banned() -> Iterator[str]:
    for path in _clean_modules():
        for name in _identifiers(path):
            words = set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()))
            for ban in BANNED:
                if words & ban.words:
                    yield from _complaint(path, name, ban.instead)


def _bare() -> Iterator[str]:
    for path in _clean_modules():
        for name in _identifiers(path) & BARE.keys():
            yield from _complaint(path, name, BARE[name])


def _identities() -> Iterator[str]:
    """Only where it is said whose it is may a variable be called so."""
    for path in _clean_modules():
        names = _identifiers(path)
        if not any(map(WHOSE_IDENTITY.fullmatch, names)):
            for name in {one for one in names if one.strip("_") in IDENTITY}:
                yield from _complaint(path, name, BARE["Identity"])


def _complaint(path: Path, name: str, instead: str) -> Iterator[str]:
    file = str(path.relative_to(SOURCE))
    if (file, name) not in EXCEPTIONS:
        yield f"{file}: `{name}`: {instead}"


def _clean_modules() -> Iterator[Path]:
    for path in sorted(SOURCE.rglob("*.py")):
        package, *inside = path.relative_to(SOURCE).parts
        room = inside[0] if package == "angarium" else package
        if room != "proto":
            yield path


@cache
def _identifiers(path: Path) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for field in ("id", "attr", "arg", "name", "asname", "rest"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                found.update(value.split("."))
        for field in ("names", "kwd_attrs"):  # of `global`, and of patterns
            found.update(one for one in getattr(node, field, ()) if isinstance(one, str))
    return frozenset(found)


def _rows() -> list[tuple[str, str, str, str]]:
    return ROW.findall(GLOSSARY.read_text(encoding="utf-8"))


def _is_there(name: str | None, room: str) -> bool:
    home = SOURCE / "angarium" / room
    files = sorted(home.rglob("*.py")) if home.is_dir() else [home.with_suffix(".py")]
    if name is None:
        return home.is_dir()
    made = re.compile(rf"^(class {name}\b|{name} = NewType)", re.MULTILINE)
    return any(one.exists() and made.search(one.read_text(encoding="utf-8")) for one in files)
