"""Where a real API server comes from: Kubernetes' own, and the etcd it keeps everything in.

Both are built once, from the sources that Go's module proxy has (some 500 MB with what they need,
half an hour on a busy machine), and stay in .angarium/judges, which `make clean` removes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.judges.tools import program
from tests.judges.verdicts import MissingTool, ran

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT: Final = Path(__file__).resolve().parents[2]
KEPT: Final = ROOT / ".angarium" / "judges"
KUBERNETES: Final = "v1.36.3"
STAGED: Final = "v0.36.3"
"""The version under which the modules are published that Kubernetes' own sources have inside."""
ETCD: Final = "v3.6.8"
"""As that Kubernetes wants it."""
BUILD_SECONDS_MAX: Final = 7_200.0

_APISERVER: Final = "k8s.io/kubernetes/cmd/kube-apiserver"
_ETCD: Final = "go.etcd.io/etcd/server/v3"
_INSIDE: Final = re.compile(r"^\t(k8s\.io/\S+) => \./staging/", re.MULTILINE)


class Programs(NamedTuple):
    """What an API server takes."""

    etcd: Path
    apiserver: Path


def built() -> Programs:
    """Return the programs, building those that are not there."""
    made = Programs(KEPT / "bin" / f"etcd-{ETCD}", KEPT / "bin" / f"kube-apiserver-{KUBERNETES}")
    if not all(one.exists() for one in made):
        go, folder = program("go"), KEPT / "kubernetes"
        folder.mkdir(parents=True, exist_ok=True)
        made.etcd.parent.mkdir(exist_ok=True)
        (folder / "go.mod").write_text(_module(go, folder), encoding="utf-8")
        for package, path in ((_ETCD, made.etcd), (_APISERVER, made.apiserver)):
            if not path.exists():
                print(f"building {path.name} with Go", flush=True)
                coming = folder / path.name
                _must([go, "build", "-mod=mod", "-o", str(coming), package], folder)
                coming.rename(path)
    return made


def _module(go: str, folder: Path) -> str:
    """Return the go.mod of a module that has nothing but Kubernetes.

    Its own go.mod takes some modules from folders beside it, which only its repository has.
    """
    (folder / "go.mod").write_text("module judges\n", encoding="utf-8")
    told = _must([go, "mod", "download", "-json", f"k8s.io/kubernetes@{KUBERNETES}"], folder)
    theirs = Path(json.loads(told)["GoMod"]).read_text(encoding="utf-8")
    (version,) = re.findall(r"^go (\S+)$", theirs, re.MULTILINE)
    lines = [f"replace {one} => {one} {STAGED}" for one in _INSIDE.findall(theirs)]
    head = f"module judges\n\ngo {version}\n\nrequire k8s.io/kubernetes {KUBERNETES}\n\n"
    return head + "\n".join(lines) + "\n"


def _must(command: Sequence[str], folder: Path) -> str:
    done = ran(command, folder=folder, seconds=BUILD_SECONDS_MAX)
    if done.returncode != 0:
        raise MissingTool(f"`{' '.join(command)}` failed: {done.stdout.strip()[-2_000:]}")
    return done.stdout
