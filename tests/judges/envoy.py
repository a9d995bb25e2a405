"""Envoy in front of a node, speaking HTTP/2 to it and asking for its health."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.judges.clients import new_topic
from tests.judges.tools import STORIES
from tests.judges.verdicts import MissingTool, Outcome, Verdict, by_lines, ran

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.judges.tools import Tools
    from tests.judges.verdicts import Targets

HEALTHY_SECONDS_MAX: Final = 30.0
LOCALHOST: Final = "127.0.0.1"


def judge(tools: Tools, targets: Targets) -> Iterator[Verdict]:
    """Run clients through Envoy, once it has found the node healthy."""
    program = tools.envoy
    front, admin = _free_ports(2)
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "envoy.json"
        settings.write_text(json.dumps(_settings(targets.broker, front, admin)), encoding="utf-8")
        log = Path(folder) / "log"
        words = ["--config-path", str(settings), "--log-path", str(log), "--concurrency", "1"]
        envoy = subprocess.Popen(
            [program, *words, "--disable-hot-restart", "--log-level", "warning"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            told = _health(admin, envoy)
            well = told is None
            outcome = Outcome.PASSED if well else Outcome.FAILED
            yield Verdict("its health check finds the node", outcome, told or "")
            if well:
                yield from _through(tools, f"{LOCALHOST}:{front}")
        finally:
            envoy.terminate()
            envoy.wait(timeout=30)


def _through(tools: Tools, address: str) -> Iterator[Verdict]:
    story = str(STORIES / "story.py")
    yield from _named("python", ran([sys.executable, story, address, new_topic("envoy")]))
    try:
        story = tools.go_story
    except MissingTool as missing:
        yield Verdict("go", Outcome.SKIPPED, str(missing))
        return
    yield from _named("go", ran([story, address, new_topic("envoy")]))


def _named(client: str, done: subprocess.CompletedProcess[str]) -> Iterator[Verdict]:
    for one in by_lines(done):
        yield Verdict(f"{client} {one.case}", one.outcome, one.told)


def _health(admin: int, envoy: subprocess.Popen[bytes]) -> str | None:
    """Wait until the node was asked and is well; return why not, if it is not."""
    asked = f"http://{LOCALHOST}:{admin}/stats?format=json&filter=^cluster.node.health_check"
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    give_up = time.monotonic() + HEALTHY_SECONDS_MAX
    told = "Envoy says nothing"
    while time.monotonic() < give_up:
        if envoy.poll() is not None:
            return f"Envoy ended with {envoy.returncode}"
        try:
            with direct.open(asked, timeout=5) as answer:
                stats = json.load(answer)["stats"]
        except OSError as error:
            told = repr(error)
        else:
            counts = {
                one["name"].rpartition(".")[2]: one["value"] for one in stats if "name" in one
            }
            # Healthy alone would not do: so counts a node that was never asked.
            if counts.get("success", 0) > 0 and not counts.get("failure", 0):
                return None
            told = f"it counts {counts}"
        time.sleep(0.1)
    return told


def _settings(node: str, front: int, admin: int) -> dict[str, Any]:
    host, _, port = node.rpartition(":")
    kinds = "type.googleapis.com/envoy.extensions"
    manager = {
        "@type": f"{kinds}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "front",
        "stream_idle_timeout": "0s",
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "all",
                    "domains": ["*"],
                    "routes": [
                        {"match": {"prefix": "/"}, "route": {"cluster": "node", "timeout": "0s"}}
                    ],
                }
            ]
        },
        "http_filters": [
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": f"{kinds}.filters.http.router.v3.Router"},
            }
        ],
    }
    filters = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]
    check = {
        "timeout": "2s",
        "interval": "0.5s",
        "unhealthy_threshold": 1,
        "healthy_threshold": 1,
        "grpc_health_check": {"service_name": "angarium.v1.Broker"},
    }
    http2 = {
        "@type": f"{kinds}.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": {}},
    }
    endpoint = {"endpoint": {"address": _address(host, int(port))}}
    cluster = {
        "name": "node",
        "type": "STATIC",
        "connect_timeout": "5s",
        "load_assignment": {"cluster_name": "node", "endpoints": [{"lb_endpoints": [endpoint]}]},
        "health_checks": [check],
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": http2
        },
    }
    listener = {
        "name": "front",
        "address": _address(LOCALHOST, front),
        "filter_chains": [{"filters": filters}],
    }
    return {
        "admin": {"address": _address(LOCALHOST, admin)},
        "static_resources": {"listeners": [listener], "clusters": [cluster]},
    }


def _address(host: str, port: int) -> dict[str, Any]:
    return {"socket_address": {"address": host, "port_value": port}}


def _free_ports(count: int) -> list[int]:
    taken = [socket.create_server((LOCALHOST, 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports
