"""The grammar: what is understood, and sentences instead of tracebacks for what is not."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angarium.cli.commands.completion import levels_of
from angarium.cli.grammar import grammar
from angarium.cli.grammar.quantities import (
    NO_LIMIT,
    From,
    duration_ms,
    shown_duration,
    shown_size,
    shown_time,
    size_bytes,
    start,
)
from angarium.cli.grammar.words import Parser
from angarium.cli.main import command, main

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]


def every_parser(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    if isinstance(parser, Parser):
        parser.complete()
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from every_parser(child)


def test_every_word_has_help_and_something_that_does_it() -> None:
    parsers = list(every_parser(grammar()))
    assert len(parsers) > 20
    for parser in parsers[1:]:
        assert parser.description
        assert callable(command(parser.get_default("run"))), parser.prog
        assert parser.format_help()


def test_every_option_has_a_sentence() -> None:
    for parser in every_parser(grammar()):
        for action in parser._actions:
            if action.option_strings and action.dest not in ("headers", "key"):
                assert action.help, (parser.prog, action.option_strings)


def test_connection_options_may_stand_in_front_of_the_word_or_behind_it() -> None:
    before = grammar().parse_args(["--servers", "a:1", "--format", "json", "topic", "list"])
    behind = grammar().parse_args(["topic", "list", "--servers", "a:1", "--format", "json"])
    assert (before.servers, before.format) == (behind.servers, behind.format) == ("a:1", "json")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (["gallop"], "gallop"),
        (["topic", "creat"], "did you mean create?"),
        (["topic", "frobnicate"], "there are create, list"),
        (["pub", "t", "--mode", "eventul"], "did you mean eventual?"),
        (["sub", "t", "--form", "latest"], "did you mean --format?"),
        (["fetch", "t", "--offset", "0"], "Try: angarium fetch --help"),
        (["pub"], "TOPIC"),
        (["pub", "t", "--mode", "fast"], "fast"),
        (["pub", "t", "--header", "novalue"], "NAME=VALUE"),
        (["pub", "t", "--rate", "0"], "1 or more"),
        (["pub", "t", "--key", "a", "--key-separator", ":"], "not allowed with"),
        (["sub", "t", "--from", "yesterday"], "is not a start"),
        (["topic", "create", "t", "--partitions", "x"], "whole number"),
        (["topic", "create", "t", "--retention", "7 moons"], "not a duration"),
        (["topic", "list", "--serv", "a:1"], "--serv"),
        (["serve", "--form", "--join", "a:1"], "not allowed with"),
        (["serve", "--wire-port", "70000"], "65535"),
        (["fetch", "t", "0", "-1"], "-1"),
        (["up", "--nodes", "0"], "1 or more"),
        (["bench", "--duration", "2 weeks"], "30s"),
        (["bench", "--duration", "s"], "30s"),
        (["bench", "--duration", "0s"], "30s"),
        (["bench", "--duration", "25h"], "up to a day"),
        (["sql", "SELECT 1", "--conf", "spark.executor.memory"], "spark.executor.memory=2g"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence_with_status_2(
    written: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(written)
    assert left.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith("angarium: ")
    assert said in told
    assert "Try: angarium" in told
    assert len(told.splitlines()) <= 3


@pytest.mark.parametrize(
    "line",
    [
        "pub demo one two --key k --whole",
        "pub demo --key k one --whole two",
        "pub --whole --key k demo one two",
    ],
)
def test_options_stand_in_front_of_values_between_them_or_behind(line: str) -> None:
    options = grammar().parse_args(line.split())
    assert (options.topic, options.values) == ("demo", ["one", "two"])
    assert (options.key, options.whole) == ("k", True)


def test_a_dash_is_a_value_wherever_it_stands() -> None:
    for line in ("pub demo - --whole", "pub demo --whole -"):
        assert grammar().parse_args(line.split()).values == ["-"]
    assert grammar().parse_args(["pub", "demo", "--", "-x", "--key"]).values == ["-x", "--key"]


def test_only_what_is_missing_is_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["pub"])
    said = capsys.readouterr().err
    assert "TOPIC" in said
    assert "VALUE" not in said, "without values lines are read from standard input"


def test_an_age_is_not_taken_for_a_flag() -> None:
    options = grammar().parse_args(["sub", "t", "--from", "-15m"])
    assert options.start.at == "timestamp"


def test_settings_of_spark_are_as_in_its_own_command() -> None:
    written = ["--conf", "spark.a=1", "--conf", "spark.b=x=y", "--conf", "spark.c="]
    options = grammar().parse_args(["pipeline", "run", "file.toml", *written])
    assert dict(options.conf) == {"spark.a": "1", "spark.b": "x=y", "spark.c": ""}
    assert grammar().parse_args(["sql", "SELECT 1"]).conf == []


def test_a_family_without_a_word_shows_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster"]) == 0
    assert "transfer" in capsys.readouterr().out


# --- quantities --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "read"), [("30", 30.0), ("0.5", 0.5), ("30s", 30.0), ("2m", 120.0), ("500ms", 0.5)]
)
def test_seconds_are_read_with_their_unit_or_without(text: str, read: float) -> None:
    """`-duration 30s` is what the benchmark of an earlier broker takes."""
    assert grammar().parse_args(["bench", "--duration", text]).duration == read


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("500ms", 500),
        ("15m", 900_000),
        ("7d", 604_800_000),
        ("1w", 604_800_000),
        ("none", NO_LIMIT),
    ],
)
def test_durations_are_read(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize(
    ("text", "size"), [("65536", 65536), ("64KiB", 65536), ("10GB", 10**10), ("1 mib", 1 << 20)]
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert size_bytes(text) == size


@given(st.integers(min_value=0, max_value=10**14))
def test_a_duration_reads_back_as_it_was_shown(ms: int) -> None:
    assert duration_ms(shown_duration(ms)) == ms


@given(st.text(max_size=12))
def test_hostile_quantities_are_refused_and_nothing_else(text: str) -> None:
    for read in (duration_ms, size_bytes, start):
        try:
            read(text)
        except argparse.ArgumentTypeError as refused:
            assert "write" in str(refused)  # noqa: PT017


@given(st.integers(min_value=-(2**63), max_value=2**63))
def test_every_time_can_be_shown(micros: int) -> None:
    assert shown_time(micros)


def test_starts_are_read() -> None:
    assert start("earliest") == From("earliest")
    assert start("120") == From("offset", 120)
    noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    assert start("2024-05-01T12:00:00Z") == From("timestamp", int(noon.timestamp() * 1e6))
    assert start("2024-05-01T14:00:00+02:00") == start("2024-05-01T12:00:00Z")
    ago = datetime.now(UTC) - timedelta(minutes=15)
    assert abs(start("-15m").value - ago.timestamp() * 1e6) < 5e6


def test_sizes_and_absences_are_shown() -> None:
    assert shown_size(None) == shown_duration(None) == "none"
    assert shown_size(1023) == "1023 B"
    assert shown_size(4 << 20) == "4 MiB"
    assert shown_size(1 << 50) == "1024.0 TiB"


# --- completion --------------------------------------------------------------------------------


def test_completion_knows_every_word_of_the_grammar() -> None:
    levels = {level.path: level for level in levels_of(grammar(), ())}
    assert set(levels[()].words) >= {"up", "serve", "topic", "pub", "sub", "fetch", "cluster"}
    assert set(levels["topic",].words) == {"create", "list", "describe", "alter", "delete"}
    options = {option.name: option for option in levels["topic", "create"].options}
    assert options["--mode"].choices == ("consistent", "eventual", "performance")
    assert not options["--if-not-exists"].takes_value
    assert "--parent" not in {option.name for option in levels["serve",].options}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "describe" in capsys.readouterr().out


# --- the reference page -------------------------------------------------------------------------


def test_the_reference_page_has_every_word_and_every_option() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    for level in levels_of(grammar(), ()):
        assert all(word in page for word in level.words), level.path
        for option in level.options:
            if option.name not in ("--help", "--version", "--follow"):
                assert option.name in page, (level.path, option.name)


def test_an_origin_of_a_gateway_that_is_none_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["gateway", "--servers", "127.0.0.1:1", "--origins", "example.org"]) == 2
    assert "write https://example.org" in capsys.readouterr().err


def test_a_host_of_a_gateway_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gateway", "--servers", "127.0.0.1:1", "--allow-host", "example.org:80"]) == 2
    assert "--hosts" in capsys.readouterr().err


def test_a_door_is_closed_with_a_flag_as_in_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    said = ["serve", "--check", "--form", "--grpc-port", "off", "--http-port", "off"]
    assert main(said) == 0
    shown = capsys.readouterr().out
    assert re.search(r"listen.grpc_port +None", shown)
    with pytest.raises(SystemExit):
        main(["serve", "--check", "--wire-port", "off"])


def test_what_becomes_of_poison_may_be_written_both_ways() -> None:
    for word in ("dead-letter", "dead_letter"):
        options = grammar().parse_args(["group", "alter", "g", "--poison", word])
        assert options.poison == "dead-letter"
