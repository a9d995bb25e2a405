"""`angarium completion`: a script that completes words, made from the grammar itself.

The script holds all words and options, so that completing costs no start of Python.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

from angarium.cli.grammar import grammar
from angarium.cli.grammar.words import Parser

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator


class Option(NamedTuple):
    """A flag and what may follow it."""

    name: str
    sentence: str
    takes_value: bool
    choices: tuple[str, ...]


class Level(NamedTuple):
    """What may be written behind some words."""

    path: tuple[str, ...]
    words: dict[str, str]
    """The next words, with their sentences; or the choices of an argument."""
    options: list[Option]


def run(options: Namespace) -> int:
    """Print the script for a shell."""
    levels = list(levels_of(grammar(), ()))
    scripts = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    print(scripts[options.shell](levels))
    return 0


def levels_of(parser: argparse.ArgumentParser, path: tuple[str, ...]) -> Iterator[Level]:
    """Yield every level of the grammar, the outermost first."""
    words: dict[str, str] = {}
    options: list[Option] = []
    below: dict[str, argparse.ArgumentParser] = {}
    if isinstance(parser, Parser):
        parser.complete()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            below = dict(action.choices)
            words |= {one.dest: one.help or "" for one in action._choices_actions}
        elif action.option_strings and action.help != argparse.SUPPRESS:
            choices = tuple(map(str, action.choices or ()))
            sentence = (action.help or "").replace("%(default)s", str(action.default))
            options += [
                Option(name, sentence, action.nargs != 0, choices)
                for name in action.option_strings
                if name.startswith("--")
            ]
        elif action.choices:
            words |= dict.fromkeys(map(str, action.choices), "")
    yield Level(path, words, options)
    for name, child in below.items():
        yield from levels_of(child, (*path, name))


def _bash(levels: list[Level]) -> str:
    """Walk over the words written so far to find the level, then offer what may follow."""
    known = " ".join(f'"{" ".join(level.path)}"' for level in levels if level.path)
    cases = "\n".join(
        f'        "{" ".join(level.path)}") words="{" ".join(level.words)}"'
        f' flags="{" ".join(option.name for option in level.options)}" ;;'
        for level in levels
    )
    values = "\n".join(
        f'        "{" ".join(level.path)} {option.name}")'
        f' COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$current")); return ;;'
        for level in levels
        for option in level.options
        if option.choices
    )
    files = "|".join(
        sorted({o.name for p in levels for o in p.options if o.takes_value and not o.choices})
    )
    return f"""\
_angarium() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
    local level="" word candidate words="" flags="" i
    for ((i = 1; i < COMP_CWORD; i++)); do
        word="${{COMP_WORDS[i]}}"
        candidate="${{level:+$level }}$word"
        for known in {known}; do
            [ "$candidate" = "$known" ] && level="$candidate"
        done
    done
    case "$level $before" in
{values}
    esac
    case "$before" in
        {files}) COMPREPLY=($(compgen -f -- "$current")); return ;;
    esac
    case "$level" in
{cases}
    esac
    case "$current" in
        -*) COMPREPLY=($(compgen -W "$flags" -- "$current")) ;;
        *)  COMPREPLY=($(compgen -W "$words" -- "$current"))
            [ -z "$words" ] && COMPREPLY=($(compgen -f -- "$current")) ;;
    esac
}}
complete -F _angarium angarium"""


def _zsh(levels: list[Level]) -> str:
    """zsh understands bash's completions; only the function that lends them has to be there."""
    return f"autoload -U +X bashcompinit && bashcompinit\n{_bash(levels)}"


def _fish(levels: list[Level]) -> str:
    lines = ["complete -c angarium -e", "complete -c angarium -f"]
    for level in levels:
        where = _fish_condition(level)
        for word, sentence in level.words.items():
            lines.append(f"complete -c angarium -n '{where}' -a '{word}' -d {_quoted(sentence)}")
        for option in level.options:
            line = f"complete -c angarium -n '{where}' -l {option.name.removeprefix('--')}"
            if option.choices:
                line += f" -x -a '{' '.join(option.choices)}'"
            elif option.takes_value:
                line += " -r"
            lines.append(f"{line} -d {_quoted(option.sentence)}")
    return "\n".join(lines)


def _fish_condition(level: Level) -> str:
    seen = [f"__fish_seen_subcommand_from {word}" for word in level.path]
    if level.words:
        seen.append(f"not __fish_seen_subcommand_from {' '.join(level.words)}")
    return "; and ".join(seen) or "true"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
