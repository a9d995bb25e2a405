"""/status, /metrics and health: names that were promised, rules that are kept."""

from __future__ import annotations

import re
import subprocess

import pytest
from tests.component.doors.http.opened_http import opened
from tests.on_a_loop import run
from tests.system_programs import require_program

from angarium.telemetry.exposition import Histogram, Sample, counter, exposition, gauge
from angarium.telemetry.meters import TOPICS_MAX, Meters


def test_the_status_has_every_name_that_earlier_brokers_gave() -> None:
    async def story() -> None:
        async with opened() as door:
            door.door.facts.meters.published("orders", 3, 300)
            status = (await door.ask("GET", "/status")).json
            assert {"node_id", "is_leader", "leader_id", "stats"} <= status.keys()
            assert status["stats"]["global"].keys() == {
                "published_total",
                "consumed_total",
                "failed_total",
                "msg_per_sec",
                "bytes_alloc_mb",
                "num_goroutines",
                "uptime",
            }
            assert status["stats"]["topics"]["orders"].keys() == {
                "published_total",
                "consumed_total",
                "active_subscribers",
                "publish_rate_sec",
                "consume_rate_sec",
            }
            older = {"messages_published", "messages_consumed", "memory_allocated_mb", "goroutines"}
            assert older <= status.keys()
            assert status["messages_published"] == 3

    run(story())


def test_all_numbers_of_the_status_are_whole() -> None:
    """Clients of the earlier brokers read them into integers, and fail at a fraction."""

    async def story() -> None:
        async with opened() as door:
            meters = door.door.facts.meters
            meters.published("orders", 3, 300)
            meters.rate("orders", "published", 3)
            meters._rates["orders", "published"].per_second = 2.5
            status = (await door.ask("GET", "/status")).json
            whole, topic = status["stats"]["global"], status["stats"]["topics"]["orders"]
            numbers = {**whole, **topic, **status}
            for name in ("stats", "uptime", "node_id", "leader_id", "cluster_id", "version"):
                del numbers[name]
            assert {type(one) for one in numbers.values()} <= {int, bool}, numbers
            assert topic["publish_rate_sec"] == 2

    run(story())


def test_health_is_told_in_one_word() -> None:
    async def story() -> None:
        async with opened() as door:
            for path in ("/healthz", "/readyz"):
                answer = await door.ask("GET", path)
                assert (answer.status, answer.body) == (200, b"ok\n")

    run(story())


async def page() -> str:
    async with opened() as door:
        await door.ask("POST", "/v1/topics/orders/records", {"value": "x"})
        await door.ask("GET", "/nowhere")
        answer = await door.ask("GET", "/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        return answer.body.decode()


def test_metrics_keep_the_rules_of_names_and_count_what_happened() -> None:
    text = run(page())
    names = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    for name, kind in names.items():
        assert re.fullmatch(r"(angarium|process)_[a-z_]+", name)
        assert name.endswith("_total") == (kind == "counter"), name
        assert f"# HELP {name} " in text
    assert 'angarium_http_requests_total{status="404"} 1' in text
    assert 'angarium_http_request_duration_seconds_bucket{le="+Inf"} 2' in text
    assert "topic=" not in text


def test_promtool_finds_nothing_to_complain_about() -> None:
    promtool = require_program("promtool", apt="prometheus")
    done = subprocess.run(
        [promtool, "check", "metrics"],
        input=run(page()),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")


def test_labels_and_help_are_escaped() -> None:
    odd = gauge("angarium_x", "a\\b\nc", 1)
    assert (
        exposition([odd])
        == b"# HELP angarium_x a\\\\b\\nc\n# TYPE angarium_x gauge\nangarium_x 1\n"
    )
    labelled = type(odd)("angarium_y", "gauge", "", (Sample(2, (("l", 'a"\n\\'),)),))
    assert exposition([labelled]).splitlines()[-1] == b'angarium_y{l="a\\"\\n\\\\"} 2'
    with pytest.raises(AssertionError):
        counter("angarium_things", "", 1)


def test_a_histogram_counts_everything_once() -> None:
    histogram = Histogram((0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 7.0):
        histogram.observe(value)
    shown = {(one.suffix, dict(one.labels).get("le")): one.value for one in histogram.samples()}
    assert shown[("_bucket", "0.1")] == 2
    assert shown[("_bucket", "1")] == 3
    assert shown[("_bucket", "+Inf")] == shown[("_count", None)] == 4
    assert shown[("_sum", None)] == pytest.approx(7.65)


def test_the_number_of_topics_counted_is_bounded() -> None:
    meters = Meters()
    for number in range(TOPICS_MAX + 5):
        meters.published(f"t{number}", 1, 10)
    assert len(meters.topics) == TOPICS_MAX
    assert meters.total.published == TOPICS_MAX + 5
