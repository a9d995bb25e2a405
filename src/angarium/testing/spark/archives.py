"""Two drivers archive one topic into the same table: is every record in it once?

    python -m angarium.testing.spark.archives [--times 10] [--records 9000]

`make chaos-lake` runs it. The drivers are processes with a Spark of their own, and each round is
for all forms of an archive. *at once*: two queries, each with its checkpoint, begin at the same
moment and commit in many micro-batches. *thought dead*: a driver is suspended (SIGSTOP) between its
tasks and their commit, another one with the same checkpoint archives everything, and the first one
goes on. Each record must be there once, by the table and by file names. After the second kind, a
query with the same checkpoint archives what has come since.
"""

from __future__ import annotations

import argparse
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import msgspec

from angarium.client import SyncClient
from angarium.spark.lake import Lake, LakeForm
from angarium.spark.lakes.contents import offsets_in
from angarium.testing.broker import BrokerThread
from angarium.testing.spark.archiving import Job, Said
from angarium.testing.spark.standalone import driver_environment, kill_tree, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

PARTITIONS: Final = 3
LATER: Final = 100
"""Records that are published when a driver thought dead has ended, for the query that follows."""

ANSWER_SECONDS_MAX: Final = 400.0
"""How long a driver may take for a round, its Spark for a start included."""

AT_ONCE: Final = "at once"
THOUGHT_DEAD: Final = "thought dead"


class Driver:
    """A process that archives. Use it as a context manager; it is killed at the end."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._said: queue.Queue[Said] = queue.Queue()

    def __enter__(self) -> Self:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "angarium.testing.spark.archiving"],
                env=driver_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.go_on()
        kill_tree(self._process)

    def begin(self, jobs: Iterable[Job]) -> None:
        """Have it run jobs at the same time."""
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(list(jobs)) + b"\n")
        self._process.stdin.flush()

    def answer(self) -> Said:
        """Wait until it says something; `TimeoutError`, with its last words, if it does not."""
        try:
            return self._said.get(timeout=ANSWER_SECONDS_MAX)
        except queue.Empty:
            words = self._log.read_text(encoding="utf-8", errors="replace")[-3000:]
            raise TimeoutError(f"a driver does not answer; its last words:\n{words}") from None

    def wait_until_suspended(self) -> None:
        """Wait until it has stopped itself."""
        said = self.answer()
        assert said.is_stopping, f"it went past the place where it stops: {said}"
        until(lambda: self._state() == "T", ANSWER_SECONDS_MAX, "the driver is suspended")

    def go_on(self) -> None:
        """Let it continue (SIGCONT), Java included."""
        os.killpg(self._process.pid, signal.SIGCONT)

    def _state(self) -> str:
        text = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii")
        return text.rpartition(")")[2].split()[0]

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(b"{"):
                self._said.put(msgspec.json.decode(line, type=Said))


@dataclass(slots=True)
class Verdict:
    """What came of the rounds of one kind and form."""

    rounds: int = 0
    exact: int = 0
    """Rounds after which each record was there once."""
    refused: int = 0
    """Commits of all rounds of this kind, in all forms, that were refused."""
    wrong: list[str] = field(default_factory=list)


class Rounds:
    """Rounds with two drivers."""

    def __init__(
        self,
        client: SyncClient,
        servers: str,
        folder: Path,
        *,
        records: int,
        forms: Sequence[str] = ("delta", "parquet", "iceberg"),
        batches: int = 3,
    ) -> None:
        """Publish `records` in each round; *at once* they are archived in `batches` micro-batches.

        Limits of micro-batches need PySpark 4.2.
        """
        self._client = client
        self._servers = servers
        self._folder = folder
        self._records = records
        self._forms = forms
        self._per_batch = -(-records // batches) if batches > 1 else 0
        self._count = 0
        self.verdicts: dict[tuple[str, str], Verdict] = {}

    def run(self, kind: str, one: Driver, other: Driver) -> None:
        """Do one round in all forms."""
        self._count += 1
        topic = f"archived-{os.getpid()}-{self._count}"
        self._client.create_topic(topic, partitions=PARTITIONS)
        self._publish(topic, self._records)
        if kind == AT_ONCE:
            one.begin(self._jobs(topic, "one", per_batch=self._per_batch))
            other.begin(self._jobs(topic, "other", per_batch=self._per_batch))
            said = [one.answer(), other.answer()]
            # Neither is wrong: both go on.
            failed = [error for each in said for error in each.errors]
        else:
            one.begin(self._jobs(topic, "other", stops=True))
            one.wait_until_suspended()
            other.begin(self._jobs(topic, "other"))
            said = [other.answer()]
            one.go_on()
            # Spark itself ends a query that finds its checkpoint used by another one.
            said.append(one.answer())
            failed = said[0].errors
        self._note(kind, topic, self._records, failed, refused=sum(each.refused for each in said))
        if kind == THOUGHT_DEAD:
            self._follow(topic, other)

    def _follow(self, topic: str, driver: Driver) -> None:
        """Have a query go on with the checkpoint that two drivers have used."""
        self._publish(topic, LATER)
        driver.begin(self._jobs(topic, "other"))
        failed = driver.answer().errors
        for form in self._forms:
            wrong = self._wrong(topic, form, self._records + LATER) or _of(form, failed)
            if wrong:
                self.verdicts[THOUGHT_DEAD, form].wrong.append(
                    f"by the query that follows: {wrong}"
                )

    def _note(
        self, kind: str, topic: str, records: int, failed: list[str], *, refused: int
    ) -> None:
        for form in self._forms:
            verdict = self.verdicts.setdefault((kind, form), Verdict())
            verdict.rounds += 1
            verdict.refused += refused
            wrong = self._wrong(topic, form, records) or _of(form, failed)
            verdict.exact += not wrong
            if wrong:
                verdict.wrong.append(wrong)

    def _publish(self, topic: str, records: int) -> None:
        for number in range(PARTITIONS):
            values = [b"%d" % one for one in range(number, records, PARTITIONS)]
            self._client.publish_batch(topic, values, partition=number)

    def _jobs(
        self, topic: str, checkpoint: str, *, per_batch: int = 0, stops: bool = False
    ) -> list[Job]:
        return [
            Job(
                servers=self._servers,
                topic=topic,
                path=str(self._path(topic, form)),
                form=form,
                checkpoint=str(self._folder / "checkpoints" / topic / form / checkpoint),
                per_batch=per_batch,
                stops=stops,
            )
            for form in self._forms
        ]

    def _path(self, topic: str, form: str) -> Path:
        return self._folder / topic / form

    def _wrong(self, topic: str, form: str, records: int) -> str | None:
        """Return what is wrong with an archive."""
        lake = Lake(str(self._path(topic, form)))
        ways = {"the table": [Path(one) for one in lake.files()]}
        if lake.form is LakeForm.PARQUET:
            ways["file names"] = list(lake.path.glob("topic=*/date=*/*.parquet"))
        for way, files in ways.items():
            offsets: Counter[tuple[int, int]] = Counter()
            for file in files:
                offsets.update(offsets_in(file))
            if offsets.total() != records or len(offsets) != records:
                return f"{offsets.total()} rows, {len(offsets)} of {records} records, by {way}"
        return None


def _of(form: str, errors: Iterable[str]) -> str | None:
    return next((error for error in errors if error.startswith(f"{form}:")), None)


def table(verdicts: dict[tuple[str, str], Verdict]) -> str:
    """Return verdicts as a table of Markdown."""
    lines = ["| round | form | each record once | commits refused |", "|---|---|---|---|"]
    refused = {kind: verdict.refused for (kind, _), verdict in verdicts.items()}
    for (kind, form), verdict in verdicts.items():
        told = f"{refused.pop(kind)} (all forms)" if kind in refused else ""
        lines.append(f"| {kind} | {form} | {verdict.exact} of {verdict.rounds} | {told} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Run the rounds, and print what came of them."""
    parser = argparse.ArgumentParser(description="Two drivers archive into the same table.")
    parser.add_argument("--times", type=int, default=10, help="rounds of each kind")
    parser.add_argument("--records", type=int, default=9_000, help="in each round")
    options = parser.parse_args(arguments)
    begun = time.monotonic()
    say: Callable[[str], None] = lambda what: print(  # noqa: E731
        f"{time.monotonic() - begun:6.0f} s  {what}", flush=True
    )
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="angarium-archives-")))
        broker = stack.enter_context(BrokerThread())
        client = stack.enter_context(SyncClient(*broker.addresses))
        drivers = [stack.enter_context(Driver(folder / f"driver-{one}.log")) for one in range(2)]
        for driver in drivers:
            driver.answer()
        say("two drivers are ready")
        rounds = Rounds(client, ",".join(broker.addresses), folder, records=options.records)
        for number in range(options.times):
            for kind in (AT_ONCE, THOUGHT_DEAD):
                rounds.run(kind, *drivers)
                say(f"round {number + 1}, {kind}")
    print(table(rounds.verdicts))
    wrong = [told for verdict in rounds.verdicts.values() for told in verdict.wrong]
    for told in wrong:
        print(f"--- {told}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
