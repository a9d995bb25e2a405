"""grpcurl, which knows nothing of a server but what reflection tells it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from tests.judges.clients import new_topic
from tests.judges.tools import GRPCURL
from tests.judges.verdicts import Outcome, Verdict, by_status, ran

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from tests.judges.tools import Tools
    from tests.judges.verdicts import Targets

SERVICES: Final = (
    "angarium.v1.Broker",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
)
SYMBOLS: Final = (
    "angarium.v1.Broker",
    "angarium.v1.Broker.Publish",
    "angarium.v1.PublishRequest",
    "angarium.v1.SubscribeRequest.Open",
    "angarium.v1.DeliveryMode",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
)


def judge(tools: Tools, targets: Targets) -> Iterator[Verdict]:
    """List, describe and call."""
    program = tools.go_program(GRPCURL)

    def asked(*words: str, data: object = None) -> subprocess.CompletedProcess[str]:
        given = [] if data is None else ["-d", json.dumps(data)]
        return ran([program, "-plaintext", "-max-time", "20", *given, targets.broker, *words])

    listed = asked("list")
    for service in SERVICES:
        found = service in listed.stdout.split()
        outcome = Outcome.PASSED if found else Outcome.FAILED
        yield Verdict(f"list {service}", outcome, "" if found else listed.stdout)
    for symbol in SYMBOLS:
        yield by_status(f"describe {symbol}", asked("describe", symbol))
    for version in ("v1", "v1alpha"):
        method = f"grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
        yield by_status(f"call reflection {version}", asked(method, data={"list_services": ""}))
    topic = new_topic("grpcurl")
    calls = {
        "CreateTopic": {"name": topic},
        "Publish": {"topic": topic, "record": {"value": "aGVyZQ=="}},
        "Fetch": {"topic": topic},
        "GetClusterStatus": {},
    }
    for name, data in calls.items():
        yield by_status(f"call {name}", asked(f"angarium.v1.Broker/{name}", data=data))
    yield by_status("call health", asked("grpc.health.v1.Health/Check", data={}))
    refused = asked("angarium.v1.Broker/DescribeTopic", data={"name": "no-such-topic"})
    well = "NotFound" in refused.stdout and '"domain": "angarium"' in refused.stdout
    outcome = Outcome.PASSED if well else Outcome.FAILED
    yield Verdict("an error with its details", outcome, "" if well else refused.stdout)
