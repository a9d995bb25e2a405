"""Reading the scripts of a peer's test suite (the *datadriven* convention).

# comment
command arg key=val key=(v1,v2)
optional input lines
----
expected output, up to a blank line; output that has blank lines itself sits between two
pairs of ---- lines
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SEPARATOR = "----"
_ARGUMENT = re.compile(r"([^\s=]+)=\(([^)]*)\)|([^\s=]+)=(\S*)|(\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """One command of a script with what it should print."""

    line: int
    command: str
    names: tuple[str, ...]
    """Arguments without a value, in order."""
    options: dict[str, tuple[str, ...]]
    """Arguments with one or several values."""
    input: str
    expected: str

    def option(self, name: str, default: str) -> str:
        """Return the only value of an option."""
        values = self.options.get(name, (default,))
        assert len(values) == 1, f"{name} takes one value"
        return values[0]


def directive_of(text: str, *, line: int = 0, given: str = "", expected: str = "") -> Directive:
    """Return the directive whose command line is `text`."""
    command, _, rest = text.strip().partition(" ")
    names: list[str] = []
    options: dict[str, tuple[str, ...]] = {}
    for match in _ARGUMENT.finditer(rest):
        list_key, list_values, key, value, name = match.groups()
        if list_key:
            options[list_key] = tuple(re.split(r"[,\s]+", list_values.strip())) * bool(
                list_values.strip()
            )
        elif key:
            options[key] = (value,)
        else:
            names.append(name)
    return Directive(
        line=line,
        command=command,
        names=tuple(names),
        options=options,
        input=given,
        expected=expected,
    )


def read_script(path: Path) -> list[Directive]:
    """Return the directives of the script at `path`, in order."""
    lines = iter(enumerate(path.read_text().splitlines(), start=1))
    directives = []
    for number, line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        text = line
        while text.endswith("\\"):
            text = text[:-1] + next(lines)[1].strip()
        given, expected = "\n".join(_input_lines(lines)), "\n".join(_expected_lines(lines))
        directives.append(directive_of(text, line=number, given=given, expected=expected))
    return directives


def _input_lines(lines: Iterator[tuple[int, str]]) -> Iterator[str]:
    for _, line in lines:
        if line == _SEPARATOR:
            return
        yield line


def _expected_lines(lines: Iterator[tuple[int, str]]) -> Iterator[str]:
    _, first = next(lines, (0, ""))
    if first != _SEPARATOR:
        while first.strip():
            yield first
            _, first = next(lines, (0, ""))
        return
    previous: str | None = None
    for _, line in lines:
        if line == previous == _SEPARATOR:
            return
        if previous is not None:
            yield previous
        previous = line
