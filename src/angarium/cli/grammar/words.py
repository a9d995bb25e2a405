"""The pieces every word of the grammar is made of."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any, NoReturn

from angarium.cli.grammar.quantities import seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_NEGATIVE = re.compile(r"-[0-9][0-9.]*[a-z]{0,2}")

USAGE_ERROR = 2
"""The exit status for something that was written wrongly."""


class Parser(argparse.ArgumentParser):
    """A parser that never guesses: `--serv` is a mistake, not `--servers`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)
        # argparse takes what this fits for a value and not for a flag. `--from -15m` is one.
        self._negative_number_matcher = _NEGATIVE
        self._is_mixing = False
        self._later: Callable[[argparse.ArgumentParser], None] | None = None

    def add_later(self, add: Callable[[argparse.ArgumentParser], None]) -> None:
        """Have `add` add flags when this parser is used, because that takes a while."""
        self._later = add

    def complete(self) -> None:
        """Add what was left for later."""
        add, self._later = self._later, None
        if add is not None:
            add(self)

    def format_help(self) -> str:
        """Return the help."""
        self.complete()
        return super().format_help()

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Read what was written, and leave if a part of it means nothing.

        Each word's parser does so itself, so that its own help is the one that is named. Options
        may stand between values, `pub demo --key k v`, which argparse takes for a mistake unless
        it is asked for its other way, and that one comes back here.
        """
        self.complete()
        if self._is_mixing or self._subparsers is not None:
            found, unknown = super().parse_known_args(args, namespace)
        else:
            self._is_mixing = True
            try:
                found, unknown = self.parse_known_intermixed_args(args, namespace)
            finally:
                self._is_mixing = False
        if unknown and not self._is_mixing:
            near = _nearest(unknown[0], self._option_string_actions)
            self.error(f"there is no {unknown[0]} here{near}")
        return found, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            near = _nearest(str(value), choices) or f"; there are {', '.join(choices)}"
            raise argparse.ArgumentError(action, f"there is no {value!r}{near}")

    def error(self, message: str) -> NoReturn:
        """Say what is wrong in a sentence, and where help is; leave with status 2."""
        self.exit(USAGE_ERROR, f"angarium: {message}\nTry: {self.prog} --help\n")


def _nearest(written: str, known: Iterable[str]) -> str:
    """Return a question whether something alike was meant, if there is anything alike."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    near = get_close_matches(written, list(known), n=1, cutoff=0.65)
    return f"; did you mean {near[0]}?" if near else ""


class Words:
    """The words that may follow a word."""

    def __init__(self, choices: argparse._SubParsersAction[Parser]) -> None:
        self._choices = choices

    @classmethod
    def below(cls, parser: Parser) -> Words:
        """Return the (still empty) list of words that may follow what `parser` reads."""
        choices = parser.add_subparsers(title="commands", metavar="COMMAND", dest=argparse.SUPPRESS)
        return cls(choices)

    def add(
        self,
        name: str,
        sentence: str,
        *,
        run: str,
        more: str = "",
        connects: bool = True,
    ) -> Parser:
        """Add a command that `run` ("module:function") does; return its parser."""
        parser = self._add(name, sentence, more)
        parser.set_defaults(run=run)
        if connects:
            add_connection_options(parser)
        return parser

    def add_family(self, name: str, sentence: str, more: str = "") -> Words:
        """Add a word that only leads to others."""
        parser = self._add(name, sentence, more)
        parser.set_defaults(run="help:family", family=parser)
        return Words.below(parser)

    def _add(self, name: str, sentence: str, more: str) -> Parser:
        return self._choices.add_parser(
            name,
            help=sentence,
            description=f"{sentence[:1].upper()}{sentence[1:]}.",
            epilog=more or None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )


def add_connection_options(parser: argparse.ArgumentParser) -> None:
    """Add what every command that talks to a cluster takes, in front of its word or behind it."""
    # SUPPRESS: a word's parser must not overwrite with a default what stood in front of it.
    group = parser.add_argument_group("connection and output")
    group.add_argument(
        "--servers",
        metavar="HOST:PORT,...",
        default=argparse.SUPPRESS,
        help="wire addresses to try (default: the profile's, else those of the cluster that runs in"
        " ./.angarium, else 127.0.0.1:7400, 7410 and 7420)",
    )
    group.add_argument(
        "--profile",
        metavar="NAME",
        default=argparse.SUPPRESS,
        help="take servers and format from this profile",
    )
    group.add_argument(
        "--region",
        metavar="NAME",
        default=argparse.SUPPRESS,
        help="where this is: nodes there are asked first, and publishes and reads stay there if"
        " they can; auto: measure (default: ANGARIUM_REGION, else the profile's)",
    )
    add_format_option(group, ("table", "json"))
    group.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=argparse.SUPPRESS,
        help="give up after this long without an answer (default: 10)",
    )


def add_format_option(group: argparse._ArgumentGroup, choices: Sequence[str]) -> None:
    """Add `--format`."""
    group.add_argument(
        "--format", choices=choices, default=argparse.SUPPRESS, help="how to print (default: table)"
    )


def natural(text: str) -> int:
    """Read a whole number from 0 on."""
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 0 or more")
    return int(text)


def positive(text: str) -> int:
    """Read a whole number from 1 on."""
    value = natural(text)
    if value == 0:
        raise argparse.ArgumentTypeError(f"it must be 1 or more, not {text}")
    return value


def port_or_off(text: str) -> int | str:
    """Read a port, or the word that leaves a door closed."""
    return text if text == "off" else port(text)


def port(text: str) -> int:
    """Read a port; 0 takes a free one."""
    value = natural(text)
    if value > 65_535:
        raise argparse.ArgumentTypeError(f"{text} is not a port; the highest is 65535")
    return value
