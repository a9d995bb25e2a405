"""The reference page: its tables are those of the code, and its example runs."""

from __future__ import annotations

import asyncio
import dataclasses
import re
import sys
from pathlib import Path

from tests.component.doors.grpc.opened import opened
from tests.on_a_loop import run

from angarium.doors.grpc import GrpcLimits
from angarium.doors.status import STATUSES
from angarium.proto.v1 import broker_pb2 as pb

ROOT = Path(__file__).resolve().parents[4]
PAGE = (ROOT / "docs" / "reference" / "grpc.md").read_text(encoding="utf-8")


def test_the_table_of_errors_is_the_table_of_the_code() -> None:
    rows = re.findall(
        r"^\| `([A-Z_]+)` \| (\w+) \| (\d+) \| (\w+) \| (\d+) \|$", PAGE, re.MULTILINE
    )
    assert rows == [
        (code, one.grpc.name, str(one.http), one.graphql, str(int(one.exit)))
        for code, one in STATUSES.items()
    ]


def test_the_table_of_limits_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \| ([\d.]+) \|", PAGE, re.MULTILINE)
    assert rows == [(name, str(value)) for name, value in dataclasses.asdict(GrpcLimits()).items()]


def test_every_call_is_in_the_table_of_calls() -> None:
    calls = {method.name for method in pb.DESCRIPTOR.services_by_name["Broker"].methods}
    table = PAGE.split("## Calls")[1].split("**Which partition.**")[0]
    named = set(re.findall(r"(?:^\| |· )([A-Z]\w+)", table, re.MULTILINE))
    assert named == calls


def test_the_example_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

    async def check() -> tuple[int, str, str]:
        async with opened(topics={}) as it:
            program = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", example.replace("127.0.0.1:7401", f"127.0.0.1:{it.port}")),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            out, err = await program.communicate()
            assert program.returncode is not None
            return program.returncode, out.decode(), err.decode()

    status, out, err = run(check())
    assert status == 0, err
    assert re.fullmatch(r"\d 0\n\[b'the road is clear'\]\n", out)
