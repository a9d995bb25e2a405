#!/bin/sh
# Install the programs listed in system-packages.txt that this machine lacks, with apt.
#
# Run from the project's root, as root or as someone who may use sudo. Does nothing, and needs no
# network, when everything is there already, wherever it came from.
set -eu

missing=
while read -r package probe; do
    case $package in '' | '#'*) continue ;; esac
    # `eval`, because a probe may quote its arguments; the list is ours, not a visitor's.
    if eval "$probe" >/dev/null 2>&1 </dev/null; then
        echo "   $package: there"
    else
        echo "   $package: missing"
        missing="$missing $package"
    fi
done < system-packages.txt

[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "There is no apt-get here; please install what gives you:$missing" >&2
    exit 1
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
    as_root=sudo
    if ! command -v sudo >/dev/null 2>&1; then
        echo "Neither root nor sudo; as root run: apt-get update && apt-get install -y$missing" >&2
        exit 1
    fi
fi

$as_root apt-get update
# shellcheck disable=SC2086  # one word per package
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
