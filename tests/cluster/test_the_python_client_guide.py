"""The guide to the Python client: every example runs against a real node as it is printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from angarium import SyncClient
    from angarium.testing.broker import BrokerThread

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "python-client.md"
PRINTED = "127.0.0.1:7400"
EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
PROGRAMS = [code for code in EXAMPLES if "\ndef test_" not in code]


@pytest.mark.parametrize("code", PROGRAMS, ids=range(len(PROGRAMS)))
def test_an_example_runs_as_it_is_printed(code: str, angarium_broker: BrokerThread) -> None:
    assert PRINTED in code
    (address,) = angarium_broker.addresses
    exec(compile(code.replace(PRINTED, address), str(GUIDE), "exec"), {"__name__": "guide"})


def test_the_example_of_a_test_passes(angarium_client: SyncClient) -> None:
    (code,) = set(EXAMPLES) - set(PROGRAMS)
    names: dict[str, Any] = {}
    exec(compile(code, str(GUIDE), "exec"), names)
    names["test_an_order_is_announced"](angarium_client)
