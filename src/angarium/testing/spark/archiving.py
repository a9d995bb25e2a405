"""A driver that archives what it is told to, and stops itself between its tasks and their commit.

    python -m angarium.testing.spark.archiving

Each line of standard input is a JSON list of `Job`; they run at the same time. The answer is a line
for standard output, `Said`. It ends with standard input.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from functools import partialmethod
from typing import Any

import msgspec

from angarium.errors import AngariumError, ArchiveAdvanced
from angarium.pipelines.archive import archive
from angarium.spark.lake import Lake, LakeForm
from angarium.spark.session import spark_session
from angarium.testing.spark.standalone import QUICK_JAVA


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What to archive once, where to, and how."""

    servers: str
    topic: str
    path: str
    form: str
    checkpoint: str
    per_batch: int = 0
    """Records per micro-batch; 0 for everything in one."""
    stops: bool = False
    """Whether the driver is suspended (SIGSTOP) when this job and all others that stop have their
    files written and are about to commit for the first time."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a list of jobs."""

    is_stopping: bool = False
    """Only this: it is about to be suspended."""
    refused: int = 0
    """Commits that were refused, because the marks of the archive were not those it had read."""
    errors: list[str] = []
    """Why queries failed; those that did not are not here."""


class _Commits:
    """The commits of this driver: it counts those that are refused, and stops before others."""

    def __init__(self) -> None:
        self.refused = 0
        self._add = Lake.add
        self._waiting: set[str] = set()
        self._gate = threading.Barrier(1)
        Lake.add = partialmethod(_add, self)  # type: ignore[assignment, method-assign]

    def add(self, lake: Lake, *args: Any, **named: Any) -> None:
        """Commit, after a stop if one is expected here."""
        if str(lake.path) in self._waiting:
            self._waiting.discard(str(lake.path))
            self._gate.wait()
        try:
            self._add(lake, *args, **named)
        except ArchiveAdvanced:
            self.refused += 1
            raise

    def expect(self, paths: set[str]) -> None:
        """Stop when commits into all these archives are about to be made."""
        self.refused = 0
        self._waiting = paths
        self._gate = threading.Barrier(max(1, len(paths)), action=_stop, timeout=300.0)


def _add(lake: Lake, commits: _Commits, *args: Any, **named: Any) -> None:
    commits.add(lake, *args, **named)


def _stop() -> None:
    _say(Said(is_stopping=True))
    # The whole group: Java as well, as if the machine were suspended.
    os.killpg(os.getpgid(0), signal.SIGSTOP)


def _say(what: Said) -> None:
    print(msgspec.json.encode(what).decode(), flush=True)


def _run(spark: Any, job: Job) -> str | None:
    """Archive once; return why that failed."""
    options = {"servers": job.servers, "subscribe": job.topic}
    if job.per_batch:
        options["maxOffsetsPerTrigger"] = str(job.per_batch)
    form = LakeForm(job.form)
    try:
        query = archive(
            spark, job.path, checkpoint=job.checkpoint, options=options, once=True, form=form
        )
        query.awaitTermination()
    except Exception as error:
        if isinstance(error, AngariumError) or type(error).__module__.startswith("pyspark"):
            return f"{job.form}: {error}"
        raise
    return None


def main() -> int:
    """Run lists of jobs until there are no more; return 0."""
    logging.basicConfig(level=logging.WARNING)
    config = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": QUICK_JAVA}
    spark = spark_session("local[2]", name="archiving", config=config)
    commits = _Commits()
    _say(Said())
    for line in sys.stdin:
        jobs = msgspec.json.decode(line, type=list[Job])
        commits.expect({job.path for job in jobs if job.stops})
        errors: list[str | None] = [None] * len(jobs)

        def run(number: int, job: Job, errors: list[str | None] = errors) -> None:
            errors[number] = _run(spark, job)

        threads = [threading.Thread(target=run, args=one) for one in enumerate(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        _say(Said(refused=commits.refused, errors=[error for error in errors if error]))
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
