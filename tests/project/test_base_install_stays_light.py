"""The base install: everything but Arrow works without pyarrow, and the command answers."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Final

import angarium

if TYPE_CHECKING:
    import pytest

EXTRAS: Final = (
    "pyarrow",
    "numpy",
    "pandas",
    "pyspark",
    "obstore",
    "grpc_tools",
    "pytest",
    "hypothesis",
)
"""What a base install lacks: here each import of one fails, as it would there."""

NEED_AN_EXTRA: Final = (
    "angarium.backup.objects",
    "angarium.batch.arrow",
    "angarium.pipelines.analytics",
    "angarium.pipelines.archive",
    "angarium.pipelines.archive_files",
    "angarium.pipelines.dead_letters",
    "angarium.pipelines.demo",
    "angarium.pipelines.headers",
    "angarium.pipelines.mirror",
    "angarium.pipelines.mirrored_layouts",
    "angarium.pipelines.quality",
    "angarium.pipelines.replay",
    "angarium.pipelines.running",
    "angarium.pipelines.sql",
    "angarium.pipelines.starting",
    "angarium.pipelines.tables",
    "angarium.spark.arrow_types",
    "angarium.spark.daemon",
    "angarium.spark.dealing",
    "angarium.spark.filling",
    "angarium.spark.filtering",
    "angarium.spark.history",
    "angarium.spark.lake",
    "angarium.spark.lakes.contents",
    "angarium.spark.lakes.delta",
    "angarium.spark.lakes.iceberg",
    "angarium.spark.lakes.joining",
    "angarium.spark.lakes.manifest",
    "angarium.spark.lakes.parquet",
    "angarium.spark.rows",
    "angarium.spark.session",
    "angarium.spark.sink",
    "angarium.spark.source",
    "angarium.spark.stream",
    "angarium.spark.type_names",
    "angarium.spark.values.avro_values",
    "angarium.spark.values.columns",
    "angarium.spark.values.decoding",
    "angarium.spark.values.json_texts",
    "angarium.spark.values.json_values",
    "angarium.spark.values.protobuf_values",
    "angarium.spark.values.shapes",
    "angarium.spark.values.writing",
    "angarium.testing.pytest_plugin",
    "angarium.testing.spark.archives",
    "angarium.testing.spark.archiving",
    "angarium.testing.spark.chaos",
    "angarium.testing.spark.copying",
)

IMPORT_EVERYTHING: Final = f"""
import importlib, pkgutil, sys

for extra in {EXTRAS!r}:
    sys.modules[extra] = None  # the import system's own way to say "not here"

import angarium, angarium_compat

for package in (angarium, angarium_compat):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if module.name not in {NEED_AN_EXTRA!r} and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
            print(module.name)
"""


COMPOSE_A_NODE: Final = """
import asyncio, os, sys
from angarium.app.composition import parts
from angarium.app.serving import Signals
from angarium.app.sources import load_settings

async def compose():
    assert parts(load_settings(environment=os.environ), Signals(on_debug=str))

asyncio.run(compose())
print(*(name for name in sys.modules if name.startswith("angarium_compat.")))
"""


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=240, check=False
    )


def test_every_room_imports_without_the_extras() -> None:
    answer = python("-c", IMPORT_EVERYTHING)
    assert answer.returncode == 0, answer.stderr
    assert {"angarium.batch", "angarium_compat.profiles"} <= set(answer.stdout.split())


def test_a_node_loads_listeners_for_earlier_brokers_only_when_one_has_a_port(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert python("-c", COMPOSE_A_NODE).stdout == "\n"
    monkeypatch.setenv("ANGARIUM_COMPAT_BALE_GRPC_PORT", "8081")
    loaded = python("-c", COMPOSE_A_NODE).stdout.split()
    assert "angarium_compat.bale" in loaded
    assert "angarium_compat.geo" not in loaded


def test_the_command_tells_its_version() -> None:
    answer = python("-m", "angarium", "--version")
    assert (answer.returncode, answer.stdout) == (0, f"angarium {angarium.__version__}\n")


def test_the_bare_command_says_how_to_begin() -> None:
    answer = python("-m", "angarium")
    assert answer.returncode == 0
    assert "angarium up" in answer.stdout


def test_help_needs_neither_a_client_nor_a_node() -> None:
    loaded = "import sys; from angarium.cli.main import main; main(['pub', '--help'])"
    answer = python("-X", "importtime", "-c", loaded)
    assert answer.returncode == 0, answer.stderr
    assert "usage: angarium pub" in answer.stdout
    imported = {line.rpartition("|")[2].strip() for line in answer.stderr.splitlines()}
    rooms = {name.split(".")[1] for name in imported if name.startswith("angarium.")}
    assert rooms == {"cli", "durations", "kinds"}
    assert not imported & {"msgspec", "asyncio", "grpc", "logging"}


def test_an_unknown_word_is_refused_without_a_traceback() -> None:
    answer = python("-m", "angarium", "gallop")
    assert answer.returncode == 2
    assert "gallop" in answer.stderr
    assert "Traceback" not in answer.stderr
