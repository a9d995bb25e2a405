"""`angarium pipeline run | validate | demo | list | status | stop`"""

from __future__ import annotations

import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from angarium.cli.complaints import Refusal
from angarium.cli.output import print_json, print_table
from angarium.cli.profiles import choices
from angarium.cli.spark import starting_spark
from angarium.client import SyncClient
from angarium.errors import NotFound
from angarium.pipelines.board import Board, State, Status
from angarium.pipelines.definition import ONCE, read_definition
from angarium.pipelines.jobs import Replay

if TYPE_CHECKING:
    from argparse import Namespace

    from angarium.cli.profiles import Choices
    from angarium.pipelines.definition import Definition


def run_here(options: Namespace) -> int:
    """Run a pipeline until it ends, with a line about each batch."""
    wanted = read_definition(Path(options.file))
    if options.once:
        wanted = replace(wanted, trigger=ONCE)
    if isinstance(wanted.job, Replay):
        from angarium.cli.commands.pipeline_jobs import run_replay  # noqa: PLC0415 (it needs us)

        servers = ",".join(map(str, choices(options).servers))
        job = replace(wanted.job, options={"servers": servers, **wanted.job.options})
        return run_replay(options, job if job.id else replace(job, id=wanted.name), servers)
    return attend(options, wanted)


def attend(options: Namespace, wanted: Definition) -> int:
    """Start a pipeline and stay with it until it ends."""
    chosen = choices(options)
    servers = ",".join(map(str, chosen.servers))
    with SyncClient(servers) as client:
        board = Board(client)
        board.refuse_second(wanted.name)
        return _attend(options, wanted, board, servers)


def _attend(options: Namespace, wanted: Definition, board: Board, servers: str) -> int:
    chosen = choices(options)
    with starting_spark(options) as spark:
        from angarium.pipelines.running import run, start  # noqa: PLC0415 (an extra)

        logging.basicConfig(format="%(message)s")
        query = start(spark, wanted, servers=servers)
        where = _shown_checkpoint(wanted.checkpoint, options.master)
        _say(f"{wanted.name} runs; Ctrl-C ends it. Its checkpoint is {where}")
        ended = run(query, wanted, board, on_progress=lambda now: print_progress(now, chosen))
        if ended.state is State.FAILED:
            failure = query.exception()
            raise failure if failure is not None else Refusal(ended.error)
    print(f"{wanted.name} has ended", file=sys.stderr)
    return 0


def _shown_checkpoint(checkpoint: str, master: str) -> str:
    """Return a checkpoint with the folder that it is relative to: from elsewhere it is another."""
    is_path = ":" not in checkpoint and master.startswith("local")
    return str(Path(checkpoint).absolute()) if is_path else checkpoint


def validate(options: Namespace) -> int:
    """Say that a file is in order, or what is wrong with it."""
    found = read_definition(Path(options.file))
    builtin = found.job is not None or found.archive is not None
    what = found.kind if builtin else f"{len(found.sources)} source(s)"
    print(f"{found.name} is in order: {what}, every {found.trigger}".replace("every once", "once"))
    return 0


def show(options: Namespace) -> int:
    """Let a topic arrive in a lake table, and ask it something."""
    chosen = choices(options)
    servers = ",".join(map(str, chosen.servers))
    with SyncClient(servers) as client, starting_spark(options) as spark:
        from angarium.pipelines.demo import demo  # noqa: PLC0415 (an extra)

        folder = str(Path(options.data).absolute())
        columns, rows = demo(spark, client, servers=servers, folder=folder, say=_say)
        print_table(columns, rows, none="The answer is empty.")
    _say("the same at any time: angarium sql 'SELECT ... FROM demo_orders'")
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def list_all(options: Namespace) -> int:
    """Print what pipelines say of themselves."""
    chosen = choices(options)
    with SyncClient(",".join(map(str, chosen.servers))) as client:
        found = Board(client).statuses()
    if chosen.is_json:
        print_json([_json(one) for one in found])
        return 0
    print_table(
        ("pipeline", "kind", "state", "batch", "in/s", "done/s", "lag", "batch ms", "where"),
        [
            (
                one.name,
                one.kind,
                one.state.value,
                one.batch,
                one.input_rows_per_s,
                one.processed_rows_per_s,
                one.lag,
                one.batch_ms,
                one.where,
            )
            for one in found
        ],
        none="No pipeline has run in the last day.",
    )
    return 0


def status(options: Namespace) -> int:
    """Print one pipeline."""
    chosen = choices(options)
    with SyncClient(",".join(map(str, chosen.servers))) as client:
        found = [one for one in Board(client).statuses() if one.name == options.name]
    if not found:
        raise NotFound(f"no pipeline {options.name} has run in the last day")
    if chosen.is_json:
        print_json(_json(found[0]))
        return 0
    told = _json(found[0])
    report = told.pop("report")
    for name, value in told.items():
        print(f"{name.replace('_', ' '):<22}{value}")
    print_table(("counted", "records"), report.items(), none="")
    return 0


def stop(options: Namespace) -> int:
    """Tell a pipeline to stop."""
    chosen = choices(options)
    with SyncClient(",".join(map(str, chosen.servers))) as client:
        Board(client).stop(options.name)
    print(f"{options.name} was told to stop.")
    return 0


def print_progress(now: Status, chosen: Choices) -> None:
    """Print a line about how a pipeline is."""
    if chosen.is_json:
        print(msgspec.json.encode(now).decode(), flush=True)
        return
    print(
        f"{now.name}  batch {now.batch}  in {now.input_rows_per_s:,.0f}/s  "
        f"done {now.processed_rows_per_s:,.0f}/s  lag {now.lag:,}  {now.batch_ms:,} ms"
        + "".join(f"  {name} {count:,}" for name, count in now.report.items() if count),
        flush=True,
    )


def _json(one: Status) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(one)
    return told
