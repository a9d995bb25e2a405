"""What every test run shares: how Hypothesis behaves on a machine that may be busy, and Ctrl-C."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

# A loaded machine is no reason to fail: neither a slow example nor a slow generator is an error
# here (pytest-timeout bounds each test). In CI the examples are the same in every run, so that a
# red run speaks of the change and not of luck; everywhere else each run tries new ones.
settings.register_profile(
    "angarium",
    deadline=None,
    print_blob=True,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("angarium")

# A shell has what it starts in the background ignore Ctrl-C, and so would every command under test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
