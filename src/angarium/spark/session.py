"""Spark sessions that suit Angarium: Java found, workers quick to start, logs out of the way.

A session started here is an ordinary one. Programs that bring their own session need nothing of
this; they only miss the settings, which `angarium.spark.settings` explains.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from zipfile import ZipFile

import pyspark
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from angarium.errors import PreconditionFailed
from angarium.spark.java import java
from angarium.spark.settings import (
    MasterKind,
    executors_python,
    kind_of,
    master_with_retries,
    refuse_incomplete,
    session_settings,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LOG_NAME: Final = "spark.log"
"""Where Java and the Python workers write what they would print, in the cache folder."""

CONNECT_PORT: Final = 15002
"""Where Spark Connect listens unless told otherwise."""

CONNECT_SECONDS_MAX: Final = 10.0
"""How long its server may take to answer at all."""

CHECKPOINT_MANAGER: Final = "FileSystemBasedCheckpointFileManager"

_PYTHON_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark's own, which print an error with its stack before it is raised."""

_LINKED: Final = ("bin", "sbin", "jars", "licenses", "data")


def cache_folder() -> Path:
    """Return the folder for what can be made again: `angarium` in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "angarium" / f"spark-{pyspark.__version__}"


def spark_session(
    master: str = "local[*]",
    *,
    name: str = "angarium",
    config: Mapping[str, str] | None = None,
    verbose: bool = False,
) -> SparkSession:
    """Start a session on `master`, or join the one that runs already.

    `config` goes before our own settings. Unless `verbose`, what Java says goes to a file
    (`log_path`) instead of the terminal. `PreconditionFailed` says what is missing.
    """
    given = dict(config or {})
    refuse_incomplete(master, given, os.environ)
    wanted = master_with_retries(master)
    builder = SparkSession.builder.appName(name)
    settings = session_settings(
        master, checkpoint_manager=checkpoint_manager(), cores=os.cpu_count() or 1
    )
    for setting in settings:
        builder = builder.config(setting.name, setting.value)
    if wanted.startswith("local"):
        # Spark would make a folder for tables of its own wherever the program happens to stand.
        builder = builder.config("spark.sql.warehouse.dir", str(cache_folder() / "warehouse"))
    for key, value in given.items():
        builder = builder.config(key, value)
    if kind_of(master) is MasterKind.CONNECT:
        return _connected(builder, master)
    python = executors_python(master, given, os.environ, own=sys.executable)
    prepare_environment(is_local=wanted.startswith("local"), python=python)
    with _quiet(verbose=verbose):
        session = builder.master(wanted).getOrCreate()
        if not verbose:
            session.sparkContext.setLogLevel("OFF")
            for logger in _PYTHON_LOGGERS:
                PySparkLogger.getLogger(logger).disabled = True
    return session


def is_connect(session: SparkSession) -> bool:
    """Tell whether a session is one of Spark Connect, which has no Java beside it."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def prepare_environment(*, is_local: bool, python: str) -> None:
    """Set the variables from which PySpark starts Java and its Python workers."""
    folder = cache_folder()
    os.environ["JAVA_HOME"] = str(java(folder).home)
    os.environ["PYSPARK_PYTHON"] = python
    if is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("SPARK_HOME", str(linked_home()))


def checkpoint_manager() -> str:
    """Return the class that renames checkpoint files in place, where this Spark has it."""
    for jar in (Path(pyspark.__path__[0]) / "jars").glob("spark-sql_*.jar"):
        with ZipFile(jar) as classes:
            for name in classes.namelist():
                if name.endswith(f"/{CHECKPOINT_MANAGER}.class"):
                    return name.removesuffix(".class").replace("/", ".")
    raise PreconditionFailed(f"PySpark {pyspark.__version__} has no {CHECKPOINT_MANAGER}")


def log_path() -> Path:
    """Return where a session that is not verbose writes what Java says."""
    return cache_folder() / LOG_NAME


def _connected(builder: SparkSession.Builder, master: str) -> SparkSession:
    """Return a session of a Spark Connect server: no Java here, and the server's own settings."""
    where = urlsplit(master)
    address = (where.hostname or "", where.port or CONNECT_PORT)
    try:
        # Spark's own client would go on trying for ten minutes without a word.
        socket.create_connection(address, timeout=CONNECT_SECONDS_MAX).close()
    except OSError as error:
        raise PreconditionFailed(
            f"no Spark Connect server answers at {address[0]}:{address[1]}: {error}"
        ) from None
    try:
        return builder.remote(master).getOrCreate()
    except ImportError as missing:
        raise PreconditionFailed(
            f"{master} needs what pip install 'pyspark[connect]' brings: {missing}"
        ) from None


def linked_home() -> Path:
    """Return a Spark home without the zipped copy of PySpark.

    Workers would import PySpark from that zip, which holds no compiled modules, so that each new
    process compiles them anew: a second instead of a third of one.
    """
    home = cache_folder() / "home"
    packaged = Path(pyspark.__path__[0])
    (home / "python" / "lib").mkdir(parents=True, exist_ok=True)
    for name in _LINKED:
        link, target = home / name, packaged / name
        if not target.exists() or (link.is_symlink() and link.readlink() == target):
            continue
        # Whole or not at all: another process may be reading the old one.
        new = home / f"{name}.{os.getpid()}"
        new.symlink_to(target)
        new.replace(link)
    return home


@contextmanager
def _quiet(*, verbose: bool) -> Iterator[None]:
    """Let processes started meanwhile write their complaints to a file."""
    if verbose:
        yield
        return
    path = log_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.dup2(log, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(log)
