"""Audit records get into the topic once, in order, whatever becomes of single publishes."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.component.service.audit.audited_cluster import audit_records, checked, until
from tests.component.service.audit.failing_service import FailingService
from tests.on_a_loop import on_a_loop

from angarium.api.access import Action, Principal, Proof, ResourceKind
from angarium.api.audit import AUDIT_TOPIC, AuditEvent, AuditOutcome
from angarium.errors import AlreadyExists, AuditUnwritable
from angarium.ids import Incarnation
from angarium.log.successions import Succession
from angarium.service.audit import Audit, AuditChoices, audit, tail, writing
from angarium.testing.broker import InProcessBroker, in_process_broker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from angarium.service.broker import Service

ROOT = Principal(name="root", proof=Proof.PASSWORD)
ASKED = (Action.TOPIC_CREATE, ResourceKind.TOPIC, "orders")


class Recording:
    """A node, and what records there; publishes can be made to fail."""

    def __init__(self, broker: InProcessBroker, choices: AuditChoices) -> None:
        self.broker = broker
        service = broker.services[0]
        assert service is not None
        self.service = FailingService(service)
        background = service.node.background
        known = len(background)
        self.audit = Audit(cast("Service", self.service), choices)
        self._tasks = [asyncio.create_task(run()) for run in background[known:]]

    async def act(self, number: int = 0, *, error: Exception | None = None) -> None:
        asked = (*ASKED[:2], f"topic-{number}")
        async with self.audit.action(ROOT, "create_topic", asked, rule="a grant", given={}):
            if error is not None:
                raise error

    async def close(self) -> None:
        await self.audit.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def recording(folder: Path, **choices: Any) -> AsyncIterator[Recording]:
    async with in_process_broker(folder) as broker:
        found = Recording(broker, AuditChoices(**choices))
        try:
            yield found
        finally:
            await found.close()


@on_a_loop
async def test_a_record_is_stored_once_whatever_answers_are_lost(tmp_path: Path) -> None:
    async with recording(tmp_path) as it:
        it.service.faults.extend(["before", "after", "after", "before", "after"])
        for number in range(5):
            await it.act(number)
        records = await audit_records(it.broker)
        actions = [one.resource for one in records if one.event is AuditEvent.ACTION]
        assert actions == [f"topic-{number}" for number in range(5)]
        report = await checked(it.broker)
        assert report.is_sound, report.findings
        first = it.service.batches[0]
        assert it.service.batches[:5] == [first] * 5, "it is repeated byte for byte"


@on_a_loop
async def test_a_publish_without_an_answer_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "ATTEMPT_S_MAX", 0.5)
    monkeypatch.setattr(audit, "WAIT_S", 60.0)
    async with recording(tmp_path) as it:
        it.service.faults.append("hang")
        await it.act()
        assert (await checked(it.broker)).is_sound


@on_a_loop
async def test_a_producer_that_was_forgotten_is_followed_by_another_writer(tmp_path: Path) -> None:
    async with recording(tmp_path) as it:
        await it.act(1)
        it.service.faults.append("forgotten")
        await it.act(2)
        report = await checked(it.broker)
        assert report.is_sound, report.findings
        assert len(report.writers) == 2
        # Whether it was stored nobody could tell: better twice than not at all.
        records = await audit_records(it.broker)
        assert [one.resource for one in records if one.event is AuditEvent.ACTION] == [
            "topic-1",
            "topic-2",
            "topic-2",
        ]


@on_a_loop
async def test_an_action_that_cannot_be_recorded_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "WAIT_S", 0.2)
    async with recording(tmp_path) as it:
        it.service.is_down = True
        with pytest.raises(AuditUnwritable, match="nothing was done"):
            await it.act()
        it.service.is_down = False
        # Once it can be written, it says that it was not carried out.
        records = await until(
            it.broker, lambda found: any(one.outcome is AuditOutcome.FAILED for one in found)
        )
        told = [(one.outcome, one.details[:16]) for one in records if one.resource == "topic-0"]
        assert told == [(AuditOutcome.ALLOWED, ""), (AuditOutcome.FAILED, "AUDIT_UNWRITABLE")]
        refused = [one for one in it.audit.families() if "refused" in one.name]
        assert refused[0].samples[0].value == 1


@on_a_loop
async def test_by_setting_it_goes_on_and_the_log_has_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(audit, "WAIT_S", 0.2)
    async with recording(tmp_path, is_refused_unwritten=False) as it:
        it.service.is_down = True
        with caplog.at_level(logging.WARNING, logger="angarium"):
            await it.act()
        (logged,) = [one for one in caplog.records if "no audit record" in one.getMessage()]
        assert '"resource":"topic-0"' in vars(logged)["record"]
        it.service.is_down = False
        records = await until(
            it.broker, lambda found: any(one.resource == "topic-0" for one in found)
        )
        assert [one.outcome for one in records if one.resource == "topic-0"] == [
            AuditOutcome.ALLOWED
        ]


@on_a_loop
async def test_the_topic_itself_is_recovered_first_and_recorded_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Else nobody could recover anything: each recovery would wait for a topic without one."""
    monkeypatch.setattr(audit, "WAIT_S", 0.2)
    monkeypatch.setattr(writing, "WAITING_MAX", 5)
    asked = (Action.CLUSTER_RECOVER, ResourceKind.CLUSTER, "")

    async def recover(topic: str, *, error: Exception | None = None, mends: bool = True) -> None:
        given = {"topic": topic, "partition": 0, "code": "1f0a93c7"}
        async with it.audit.action(ROOT, "recover_partition", asked, rule="a grant", given=given):
            assert "1f0a93c7" in vars(caplog.records[-1])["record"], "the log has it before"
            if error is not None:
                raise error
            it.service.is_down = not mends

    async with recording(tmp_path) as it:
        with caplog.at_level(logging.WARNING, logger="angarium"):
            await it.act(1)
            it.service.is_down = True
            for number in range(10):  # no room is left by those who try to come in
                it.audit.login_failed("", Proof.PASSWORD, f"reason {number}")
            with pytest.raises(AuditUnwritable, match="recover that topic first"):
                await recover("orders")
            with pytest.raises(AlreadyExists):
                await recover(AUDIT_TOPIC, error=AlreadyExists("a leader"))
            await recover(AUDIT_TOPIC, mends=False)
            monkeypatch.setattr(audit, "WAIT_S", 60.0)
            await recover(AUDIT_TOPIC)
        records = await audit_records(it.broker)
        told = [(one.outcome, one.details) for one in records if one.what == "recover_partition"]
        done = f'{{"topic":"{AUDIT_TOPIC}","partition":0,"code":"1f0a93c7"}}'
        failed = (AuditOutcome.FAILED, "ALREADY_EXISTS: a leader")
        allowed = (AuditOutcome.ALLOWED, done)
        assert told == [allowed, failed, allowed, allowed]
        assert (await checked(it.broker)).is_sound


@on_a_loop
async def test_a_recovered_catalog_is_recorded_once_however_long_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "WAIT_S", 0.05)
    found = Succession(cluster="b", previous="a", incarnation=Incarnation(7), by="somebody@here")
    async with recording(tmp_path) as it:
        it.service.is_down = True
        telling = asyncio.create_task(it.audit.catalog_recovered(found))
        await asyncio.wait([telling], timeout=0.3)
        assert not telling.done(), "it waits, and does not say that it failed"
        it.service.is_down = False
        await telling
        records = await audit_records(it.broker)
        told = [one for one in records if one.event is AuditEvent.RECOVERY]
        assert [(one.outcome, one.resource) for one in told] == [(AuditOutcome.ALLOWED, "b")]


@on_a_loop
async def test_at_the_bound_records_are_dropped_counted_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(writing, "WAITING_MAX", 20)
    async with recording(tmp_path) as it:
        await it.act(1)
        it.service.is_down = True
        for number in range(30):
            it.audit.login_failed("", Proof.PASSWORD, f"reason {number}")
        assert it.audit.writer.waiting == 20
        assert it.audit.writer.dropped_total == 10
        # There is no room for an action either, so it is refused at once.
        with caplog.at_level(logging.WARNING, logger="angarium"), pytest.raises(AuditUnwritable):
            await it.act(2)
        assert "no audit record" in caplog.text
        it.service.is_down = False
        records = await until(it.broker, lambda found: any(one.what == "drop" for one in found))
        (dropped,) = [one for one in records if one.what == "drop"]
        # Besides the logins the word that the action was refused.
        assert (dropped.count, dropped.outcome) == (11, AuditOutcome.FAILED)
        assert dropped.details == "no room for them: 1 of action, 10 of login"
        report = await checked(it.broker)
        assert report.is_sound, report.findings
        assert report.writers[0].lost == 11


@on_a_loop
async def test_what_fails_after_it_was_let_through_is_a_second_record(tmp_path: Path) -> None:
    async with recording(tmp_path) as it:
        with pytest.raises(AlreadyExists):
            await it.act(error=AlreadyExists("there is one"))
        with pytest.raises(KeyError):
            await it.act(error=KeyError("a secret"))
        records = await until(
            it.broker,
            lambda found: sum(one.outcome is AuditOutcome.FAILED for one in found) == 2,
        )
        details = [one.details for one in records if one.outcome is AuditOutcome.FAILED]
        assert details == ["ALREADY_EXISTS: there is one", "KeyError"]


@on_a_loop
async def test_a_writer_says_when_it_ends_and_another_run_goes_on(tmp_path: Path) -> None:
    async with in_process_broker(tmp_path) as broker:
        for number in range(3):
            it = Recording(broker, AuditChoices())
            await it.act(number)
            await it.close()
        report = await checked(broker)
        assert report.is_sound, report.findings
        assert [(one.records, one.has_ended) for one in report.writers] == [(3, True)] * 3
        seen = [one.seen for one in await audit_records(broker)]
        assert [None if one is None else one.offset for one in seen] == [
            *(None, None, 1),
            *(2, 2, 4),
            *(5, 5, 7),
        ]


@on_a_loop
async def test_a_node_that_writes_nothing_vouches_for_what_others_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "FIRST_LOOK_S", 0.1)
    monkeypatch.setattr(writing, "WITNESS_S", 0.1)
    async with in_process_broker(tmp_path) as broker:
        busy, idle = (Recording(broker, AuditChoices()) for _ in range(2))
        await busy.act()
        # Whoever looks for the first time begins with the newest record, and has seen no news.
        await until(broker, lambda _: idle.audit.writer._tail.seen is not None)
        await busy.act(1)
        await until(broker, lambda found: any(one.what == "witness" for one in found))
        await asyncio.sleep(0.5)
        # They do not go on vouching for each other's vouching.
        assert sum(one.what == "witness" for one in await audit_records(broker)) <= 2
        report = await checked(broker)
        assert report.is_sound, report.findings
        await busy.close()
        await idle.close()


@on_a_loop
async def test_the_digest_is_learnt_from_the_newest_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "LOOK_BACK", 3)
    async with in_process_broker(tmp_path) as broker:
        first = Recording(broker, AuditChoices())
        for number in range(10):
            await first.act(number)
        second = Recording(broker, AuditChoices())
        await second.act(99)
        last = (await audit_records(broker))[-1]
        assert last.seen is not None
        assert last.seen.offset == 10
        report = await checked(broker)
        assert report.is_sound, report.findings
        assert report.unvouched == 1
        await first.close()
        await second.close()


@on_a_loop
async def test_the_topic_is_made_with_the_retention_that_was_set(tmp_path: Path) -> None:
    async with in_process_broker(tmp_path) as broker:
        service = broker.services[0]
        assert service is not None
        for days, wanted in ((7, 7 * 86_400_000), (0, None)):
            it = Recording(broker, AuditChoices(retention_days=days))
            await it.act()
            config = (await service.describe_topic(AUDIT_TOPIC)).config
            assert config.retention_ms == wanted
            await it.close()


@on_a_loop
async def test_one_principal_does_not_fill_the_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "WAIT_S", 0.5)
    monkeypatch.setattr(audit, "ACTIONS_OF_ONE_MAX", 3)
    async with recording(tmp_path) as it:
        it.service.is_down = True
        done = await asyncio.gather(*(it.act(n) for n in range(5)), return_exceptions=True)
        kinds = sorted(type(one).__name__ for one in done)
        assert kinds == ["AuditUnwritable"] * 3 + ["LimitExceeded"] * 2
        it.service.is_down = False
        await until(it.broker, lambda found: any(one.resource == "topic-0" for one in found))
        await it.act(9)
