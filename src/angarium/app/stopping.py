"""Work that is given up when somebody says stop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Coroutine


async def done_before(stop: asyncio.Event, work: Coroutine[object, object, object]) -> bool:
    """Wait for `work` and return True; if `stop` is set before, cancel it and return False."""
    doing = asyncio.ensure_future(work)
    told = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((doing, told), return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            return False
        doing.result()
        return True
    finally:
        for task in (doing, told):
            task.cancel()
        await asyncio.gather(doing, told, return_exceptions=True)
