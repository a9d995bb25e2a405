"""Public judges of the gRPC door: other people's clients and test suites, and a table.

    python -m tests.judges [--only h2spec,go] [--broker HOST:PORT] [--service HOST:PORT] ...

Servers that are not named are started: a node of its own, and gRPC's test service on the server
that the doors are made of. Judges are built or installed on first use, from the registries of their
languages; one that cannot be had is told, and fails nothing. A case that fails does: exit 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.judges import clients, envoy, grpcurl, h2spec, interop, k6, storms
from tests.judges.servers import interop_service, node
from tests.judges.tools import ROOT, Tools
from tests.judges.verdicts import MissingTool, Outcome, Targets, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

JUDGES: Final[dict[str, Callable[[Tools, Targets], Iterator[Verdict]]]] = {
    "h2spec": h2spec.in_the_clear,
    "h2spec-tls": h2spec.encrypted,
    "interop-go": interop.with_go,
    "interop-go-tls": interop.with_go_encrypted,
    "interop-java": interop.with_java,
    "interop-okhttp": interop.with_okhttp,
    "storms": storms.judge,
    "restarts": storms.restarts,
    "go": clients.go,
    "java": clients.java,
    "node": clients.node,
    "python": clients.python,
    "grpcurl": grpcurl.judge,
    "k6": k6.judge,
    "envoy": envoy.judge,
}


def main(arguments: list[str]) -> int:
    """Hear the judges; return the exit status."""
    options = _options(arguments)
    names = options.only.split(",") if options.only else list(JUDGES)
    if unknown := [name for name in names if name not in JUDGES]:
        print(f"no judge {', '.join(unknown)}; there are: {', '.join(JUDGES)}", file=sys.stderr)
        return 2
    rows: list[tuple[str, Counter[Outcome], float, str]] = []
    with ExitStack() as stack:
        targets = Targets(
            broker=options.broker or stack.enter_context(node()),
            service=options.service or stack.enter_context(interop_service()),
            service_tls=options.service_tls or stack.enter_context(interop_service(tls=True)),
        )
        tools = Tools(options.folder)
        tools.folder.mkdir(parents=True, exist_ok=True)
        rows += (
            (name, *heard(name, tools, targets, all_cases=options.all_cases)) for name in names
        )
    print(f"\n{'judge':16}{'passed':>8}{'FAILED':>8}{'skipped':>9}{'seconds':>9}")
    for name, counts, seconds, missing in rows:
        numbers = [counts[one] for one in Outcome]
        print(f"{name:16}{numbers[0]:8}{numbers[1]:8}{numbers[2]:9}{seconds:9.1f}  {missing}")
    return int(any(counts[Outcome.FAILED] for _, counts, _, _ in rows))


def heard(
    name: str, tools: Tools, targets: Targets, *, all_cases: bool
) -> tuple[Counter[Outcome], float, str]:
    """Hear one judge; say at once what it finds wrong."""
    counts: Counter[Outcome] = Counter()
    missing = ""
    print(f"== {name}", flush=True)
    started = time.monotonic()
    try:
        for verdict in JUDGES[name](tools, targets):
            counts[verdict.outcome] += 1
            if all_cases or verdict.outcome is not Outcome.PASSED:
                print(f"   {verdict.outcome.value} {verdict.case}: {verdict.told}", flush=True)
    except MissingTool as error:
        missing = f"not heard: {error}"
        print(f"   {missing}", flush=True)
    return counts, time.monotonic() - started, missing.partition("\n")[0][:60]


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.judges", description=__doc__)
    parser.add_argument("--only", help=f"some of: {','.join(JUDGES)}")
    parser.add_argument("--broker", metavar="HOST:PORT", help="a node's gRPC door")
    parser.add_argument("--service", metavar="HOST:PORT", help="gRPC's test service")
    parser.add_argument("--service-tls", metavar="HOST:PORT", help="the same, encrypted")
    parser.add_argument("--folder", type=Path, default=ROOT / ".angarium" / "judges")
    parser.add_argument("--all-cases", action="store_true", help="name those that pass, too")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
