"""How a Spark session of ours is set up, setting by setting, and why.

Some settings are safe wherever Spark runs; some only where driver, executors and checkpoint share
one machine. docs/reference/spark.md has this table with what was measured.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.errors import PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Mapping


class MasterKind(Enum):
    """Where Spark runs, by how its master is written."""

    LOCAL = "local"
    STANDALONE = "spark://"
    KUBERNETES = "k8s://"
    CONNECT = "sc://"
    OTHER = ""
    """Anything else, YARN for one: Spark knows what it means."""


class Reach(Enum):
    """Where a setting may be used."""

    EVERYWHERE = "everywhere"
    """With any master."""
    CLASSIC = "classic"
    """With any master but Spark Connect, whose server has its own processes."""
    LOCAL = "local"
    """With a `local` master and a checkpoint on a local disk only."""


class Setting(NamedTuple):
    """One setting of a session."""

    name: str
    value: str
    reach: Reach
    why: str


TASK_ATTEMPTS: Final = 4
"""How often a `local` master tries a task; without a number it never tries twice."""

IMAGES: Final = ("spark.kubernetes.container.image", "spark.kubernetes.executor.container.image")
"""Either says what executors run on Kubernetes."""

PYTHON: Final = "spark.pyspark.python"
"""Which Python executors run. Spark's own launcher reads it; in a session of ours we do."""

_LOCAL: Final = re.compile(r"local(?:\[(\d+|\*)(?:,\s*(\d+))?\])?")


def kind_of(master: str) -> MasterKind:
    """Return where a master is."""
    if _LOCAL.fullmatch(master) is not None:
        return MasterKind.LOCAL
    schemes = (MasterKind.STANDALONE, MasterKind.KUBERNETES, MasterKind.CONNECT)
    return next((kind for kind in schemes if master.startswith(kind.value)), MasterKind.OTHER)


def master_with_retries(master: str) -> str:
    """Return a `local` master that repeats a failed task, as every other master does."""
    found = _LOCAL.fullmatch(master)
    if found is None:
        return master
    return f"local[{found[1] or 1},{found[2] or TASK_ATTEMPTS}]"


def session_settings(master: str, *, checkpoint_manager: str, cores: int) -> list[Setting]:
    """Return the settings of a session on `master`.

    `checkpoint_manager` is the class that renames files in place, which Spark's versions keep in
    different packages; `cores` is what a local master has.
    """
    reaches = {Reach.EVERYWHERE}
    kind = kind_of(master)
    if kind is not MasterKind.CONNECT:
        reaches.add(Reach.CLASSIC)
    if kind is MasterKind.LOCAL:
        reaches.add(Reach.LOCAL)
    return [one for one in _settings(checkpoint_manager, cores) if one.reach in reaches]


def executors_python(
    master: str, config: Mapping[str, str], environment: Mapping[str, str], *, own: str
) -> str:
    """Return the Python that executors run: the one that was asked for, or a sensible one.

    `own` is the driver's. It is where the nodes of a standalone cluster have it, too, unless told
    otherwise; an image has its own.
    """
    if asked := config.get(PYTHON) or environment.get("PYSPARK_PYTHON"):
        return asked
    return "python3" if kind_of(master) is MasterKind.KUBERNETES else own


def refuse_incomplete(
    master: str, config: Mapping[str, str], environment: Mapping[str, str]
) -> None:
    """Raise `PreconditionFailed` if something is missing without which nothing can run there.

    Spark would say so, too, but only after Java has started, and not what has to be in it.
    """
    if kind_of(master) is not MasterKind.KUBERNETES or any(name in config for name in IMAGES):
        return
    # Files and arguments of Spark's own may name it as well; then Spark is to judge.
    if not {"SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"} & environment.keys():
        raise PreconditionFailed(
            f"{master} needs an image that has Spark, Python and angarium[spark]: {IMAGES[0]}"
        )


def _settings(checkpoint_manager: str, cores: int) -> list[Setting]:
    return [
        Setting(
            "spark.sql.session.timeZone",
            "UTC",
            Reach.EVERYWHERE,
            "timestamps mean the same on every machine",
        ),
        Setting(
            "spark.sql.execution.arrow.maxRecordsPerBatch",
            "10000",
            Reach.EVERYWHERE,
            "how many rows the sink is handed at once: with 10,000 of 100 bytes it is fastest",
        ),
        Setting(
            "spark.sql.python.filterPushdown.enabled",
            "true",
            Reach.EVERYWHERE,
            "with the option pushFilters a query's conditions decide what is read at all",
        ),
        Setting(
            "spark.python.unix.domain.socket.enabled",
            "true",
            Reach.CLASSIC,
            "spares each micro-batch 40 ms of waiting between Java and Python",
        ),
        Setting(
            "spark.python.daemon.module",
            "angarium.spark.daemon",
            Reach.CLASSIC,
            "workers do not search all their modules for garbage after every task",
        ),
        Setting(
            "spark.driver.memory",
            "2g",
            Reach.LOCAL,
            "enough for everything measured, and leaves room for a broker beside it",
        ),
        Setting(
            "spark.sql.shuffle.partitions",
            str(cores),
            Reach.LOCAL,
            "200 by default: two hundred tiny tasks for every shuffle",
        ),
        Setting("spark.ui.enabled", "false", Reach.LOCAL, "a port and memory for nobody"),
        Setting(
            "spark.ui.showConsoleProgress", "false", Reach.LOCAL, "our own progress line instead"
        ),
        Setting(
            "spark.sql.streaming.checkpointFileManagerClass",
            checkpoint_manager,
            Reach.LOCAL,
            "renames checkpoint files in place; the default forks a program for every file. Not "
            "safe for two drivers on one checkpoint, nor for an object store",
        ),
        Setting(
            "spark.hadoop.fs.file.impl",
            "org.apache.hadoop.fs.RawLocalFileSystem",
            Reach.LOCAL,
            "no .crc file beside each file, which costs a fork each; loses Hadoop's own check of "
            "local files",
        ),
    ]
