"""How busy a thread is, by the figures of this machine's kernel."""

from __future__ import annotations

import time
from contextlib import closing

from angarium.node.business import Business


def test_a_thread_that_works_is_busy_and_one_that_sleeps_is_not() -> None:
    with closing(Business()) as business:
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            pass
        worked = business.share()
        slept = []
        for _ in range(10):
            time.sleep(0.1)
            slept.append(business.share())
    assert 0.5 < worked <= 1.0
    # Whoever is woken on a busy machine waits for a processor, and that counts: not each time.
    assert min(slept) < 0.5
