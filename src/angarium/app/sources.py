"""Where settings come from: a flag wins over the environment, that over node.toml, that over the
default. Every value remembers its origin, so that a complaint names the place to mend.

A setting has one name everywhere: `wire_port` in section `[listen]` of node.toml is
`ANGARIUM_LISTEN_WIRE_PORT` in the environment. A name that nobody knows is refused, with the
nearest one that exists: a typing mistake must not silently become a default.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args, get_origin, get_type_hints

from angarium.addresses import Address, parse_addresses
from angarium.app.settings import SECTIONS, InvalidSettings, Problem, Settings
from angarium.app.settings_problems import problems
from angarium.security.tls.client import VARIABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PREFIX: Final = "ANGARIUM_"

FILE_BYTES_MAX: Final = 1 << 20
"""A longer node.toml is refused: it is some other file."""

_USERS: Final = "users"

_WORDS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class Given(NamedTuple):
    """A value as somebody wrote it, and where."""

    value: object
    origin: str
    folder: Path = Path()
    """What a relative path starts from."""


Values = dict[tuple[str, str], Given]
"""By section and field."""


def load_settings(
    *,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[tuple[str, str], Given] | None = None,
) -> Settings:
    """Return the settings that all sources together give; raises `InvalidSettings`.

    All problems are told at once, so that nobody mends a file line by line.
    """
    found: list[Problem] = []
    values: Values = {}
    if file is not None:
        values |= _from_file(file, found)
    values |= _from_environment(environment or {}, found)
    values |= flags or {}
    settings = _built(values, found)
    if settings is not None:
        found += [
            problem._replace(origin=values[key].origin)
            if (key := _key(problem)) in values
            else problem._replace(origin="not set")
            for problem in problems(settings)
        ]
    if settings is None or found:
        raise InvalidSettings(tuple(found))
    return settings


def known_settings() -> list[tuple[str, str]]:
    """Return every (section, field) there is."""
    return [(name, one.name) for name, section in SECTIONS.items() for one in fields(section)]


def variable(section: str, name: str) -> str:
    """Return the environment variable of a setting."""
    return f"{PREFIX}{section}_{name}".upper()


def environment_of(settings: Settings) -> dict[str, str]:
    """Return the variables that give exactly these settings to a process started with them."""
    return {
        variable(section, name): _written(getattr(getattr(settings, section), name))
        for section, name in known_settings()
    }


def _written(value: object) -> str:
    match value:
        case None:
            return "off"
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(map(str, value))
        case dict():
            return " ".join(f"{name}={one}" for name, one in value.items())
        case _:
            return str(value)


# --- the sources -------------------------------------------------------------------------------


def _from_file(file: Path, found: list[Problem]) -> Values:
    text = _text_of(file, found)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found.append(Problem("TOML", f"{error}; the file cannot be read beyond that", str(file)))
        return {}
    values: Values = {}
    for section, content in document.items():
        line = _line_of(text, section, None)
        if section not in SECTIONS:
            what = f"there is no such section{_nearest(section, SECTIONS)}"
            found.append(Problem(f"[{section}]", what, _at(file, line)))
            continue
        if not isinstance(content, dict):
            what = f"it is a section, not a setting: write [{section}], and its settings below it"
            found.append(Problem(section, what, str(file)))
            continue
        if section == _USERS:
            # Its names are the users' own.
            values[section, "hashes"] = Given(content, _at(file, line))
            continue
        names = [one.name for one in fields(SECTIONS[section])]
        for name, value in content.items():
            origin = _at(file, _line_of(text, section, name))
            if name in names:
                values[section, name] = Given(value, origin, file.parent)
            else:
                what = f"there is no such setting{_nearest(name, names)}"
                found.append(Problem(f"{section}.{name}", what, origin))
    return values


def _text_of(file: Path, found: list[Problem]) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX:
            found.append(Problem("file", f"longer than {FILE_BYTES_MAX} bytes", str(file)))
            return ""
        return content.decode()
    except OSError as error:
        found.append(Problem("file", f"cannot be read: {error.strerror}", str(file)))
    except UnicodeDecodeError as error:
        found.append(Problem("file", f"is no UTF-8 text (byte {error.start})", str(file)))
    return ""


def _from_environment(environment: Mapping[str, str], found: list[Problem]) -> Values:
    known = {variable(*setting): setting for setting in known_settings()}
    of_a_section = tuple(f"{PREFIX}{section}_".upper() for section in SECTIONS)
    values: Values = {}
    for name in sorted(environment):
        if name in known:
            values[known[name]] = Given(environment[name], name)
        # Other ANGARIUM_ variables belong to other programs: the command line, clients, the tests.
        elif name.startswith(of_a_section) and name not in VARIABLES.values():
            what = f"there is no such setting{_nearest(name, known)}"
            found.append(Problem(name, what, "the environment"))
    return values


# --- from values to settings -------------------------------------------------------------------


def _built(values: Values, found: list[Problem]) -> Settings | None:
    sections: dict[str, Any] = {}
    problems_before = len(found)
    for section, kind in SECTIONS.items():
        hints = get_type_hints(kind)
        content = {}
        for (its_section, name), given in values.items():
            if its_section != section:
                continue
            try:
                content[name] = _converted(given, hints[name])
            except ValueError as error:
                found.append(Problem(f"{section}.{name}", str(error), given.origin))
        try:
            sections[section] = kind(**content)
        except ValueError as error:
            # A section says which of its fields it complains about, in front of a colon.
            name, _, what = str(error).partition(": ")
            given = values.get((section, name), Given(None, "not set"))
            found.append(Problem(f"{section}.{name}", what, given.origin))
    return Settings(**sections) if len(found) == problems_before else None


def _converted(given: Given, hint: Any) -> object:
    if hint in _CONVERTERS:
        return _CONVERTERS[hint](given)
    if get_origin(hint) is not None and all(isinstance(one, str) for one in get_args(hint)):
        return _choice(given, get_args(hint))
    raise AssertionError(f"no way to read a {hint}")


def _string(given: Given) -> str:
    if not isinstance(given.value, str):
        raise ValueError(f"{given.value!r} is not a text; put it into quotes")
    return given.value


def _choice(given: Given, choices: tuple[str, ...]) -> str:
    if given.value not in choices:
        raise ValueError(f"{given.value!r} is none of {', '.join(choices)}")
    return _string(given)


def _number(given: Given) -> int:
    value = given.value
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}", value.strip()):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"{value!r} is not a whole number")


def _truth(given: Given) -> bool:
    value = given.value
    if isinstance(value, str) and value.strip().lower() in _WORDS:
        return _WORDS[value.strip().lower()]
    if isinstance(value, bool):
        return value
    raise ValueError(f"{value!r} is neither true nor false")


def _path(given: Given) -> Path:
    text = _string(given)
    if not text or "\0" in text:
        raise ValueError(f"{text!r} names no file or folder")
    return given.folder / Path(text).expanduser()


def _path_or_off(given: Given) -> Path | None:
    return None if given.value in ("off", "") else _path(given)


def _address(given: Given) -> Address:
    return given.value if isinstance(given.value, Address) else Address.parse(_string(given))


def _number_or_off(given: Given) -> int | None:
    return None if given.value == "off" else _number(given)


def _addresses(given: Given) -> tuple[Address, ...]:
    if isinstance(given.value, list | tuple):
        return tuple(_address(Given(one, given.origin)) for one in given.value)
    text = _string(given)
    return parse_addresses(text) if text.strip() else ()


def _strings(given: Given) -> tuple[str, ...]:
    if isinstance(given.value, list | tuple):
        return tuple(_string(Given(one, given.origin)) for one in given.value)
    return tuple(one.strip() for one in _string(given).split(",") if one.strip())


def _numbers(given: Given) -> tuple[int, ...]:
    return tuple(_number(Given(one, given.origin)) for one in _listed(given))


def _pairs(given: Given) -> dict[str, str]:
    """Read a table of texts; in the environment, name=text with spaces between."""
    if isinstance(given.value, dict):
        return {name: _string(Given(one, given.origin)) for name, one in given.value.items()}
    words = [one.partition("=") for one in _string(given).split()]
    return {name: text for name, _, text in words}


def _listed(given: Given) -> list[object] | tuple[object, ...]:
    """Return the members of a list, or of a text with commas."""
    if isinstance(given.value, list | tuple):
        return given.value
    if isinstance(given.value, int):
        return [given.value]
    return [one.strip() for one in _string(given).split(",") if one.strip()]


_CONVERTERS: Final[dict[Any, Callable[[Given], object]]] = {
    str: _string,
    int: _number,
    bool: _truth,
    Path: _path,
    int | None: _number_or_off,
    Path | None: _path_or_off,
    tuple[Address, ...]: _addresses,
    tuple[str, ...]: _strings,
    tuple[int, ...]: _numbers,
    dict[str, str]: _pairs,
}


# --- complaints --------------------------------------------------------------------------------


def _key(problem: Problem) -> tuple[str, str]:
    section, _, name = problem.setting.partition(".")
    return section, name


def _at(file: Path, line: int | None) -> str:
    return f"{file}, line {line}" if line else str(file)


def _line_of(text: str, section: str, name: str | None) -> int | None:
    """Return the line where a section begins, or where one of its fields is set."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        heading = re.match(r"\s*\[\s*([^\]\s]+)\s*\]", line)
        if heading:
            inside = heading[1].strip("\"'") == section
            if inside and name is None:
                return number
        elif (
            inside and name is not None and re.match(rf"\s*[\"']?{re.escape(name)}[\"']?\s*=", line)
        ):
            return number
    return None


def _nearest(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(known)}"
