"""The README and the guides about groups: each example runs on a real node as it is printed."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from angarium.client.handlers.app import App
from angarium.errors import NotFound

if TYPE_CHECKING:
    from angarium.testing.broker import BrokerThread

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"
PRINTED = "127.0.0.1:7400"
README = GUIDES.parents[1] / "README.md"
PAGES = (
    "work-queue",
    "ordered-processing",
    "retry",
    "dead-letters",
    "delayed-jobs",
    "exactly-once",
    "handlers",
    "switching",
)
EXAMPLES = [
    pytest.param(code, id=f"{page.stem}-{number}")
    for page in (README, *(GUIDES / f"{name}.md" for name in PAGES))
    for number, code in enumerate(
        re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    )
]


async def _until_nothing_is_left(app: App) -> None:
    """Run an app as `App.run` does, until its groups have settled everything."""
    serving = asyncio.create_task(app.serve())
    async with asyncio.timeout(60):
        idle = 0
        while idle < 3:
            await asyncio.sleep(0.1)
            if serving.done():
                break
            groups = {handler.group for handler in app.handlers}
            try:
                infos = [await app.client.describe_group(group) for group in groups]
            except NotFound:  # a busy machine: a handler has not joined its group yet
                continue
            is_done = all(info.lag == 0 and any(p.floor for p in info.positions) for info in infos)
            idle = idle + 1 if is_done else 0
        app.stop()
        await serving


@pytest.mark.parametrize("code", EXAMPLES)
def test_an_example_runs_as_it_is_printed(
    code: str, angarium_broker: BrokerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    (address,) = angarium_broker.addresses
    # An app goes on for ever; here it ends when its work is done.
    monkeypatch.setattr(App, "run", lambda app: asyncio.run(_until_nothing_is_left(app)))
    # As a module of its own: handlers' annotations are looked up in theirs.
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    exec(compile(code.replace(PRINTED, address), "guide", "exec"), vars(module))
