"""Drives a `Host`: what came in during one turn of the loop is carried out together.

Publishes to one partition share a Raft entry, messages for one peer share a frame, and everything
appended shares a sync. Whatever goes wrong in the host ends the node: one that broke off half-way
is no host.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import closing
from itertools import count
from typing import TYPE_CHECKING

from angarium.errors import LimitExceeded, NotLeader
from angarium.node.business import Business, pressure
from angarium.node.gathering import Gathering, shared_entries
from angarium.node.pacing import CopyPacing
from angarium.node.syncing import Syncer

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from angarium.ids import Micros, RaftGroupId, ReplicaId
    from angarium.node.config import NodeConfig
    from angarium.node.hearing import Hearing
    from angarium.node.lag import LoopLag
    from angarium.node.peers import Peers
    from angarium.raft.messages import Message
    from angarium.replica.acks import Publishing
    from angarium.replica.host import Host, Sync
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.replica.peers import PeerMessage
    from angarium.replica.work import Work

HOUSEKEEPING_S = 0.1
"""How often segments are written behind and snapshots are considered."""

THOROUGH_EVERY = 5
"""Rounds of housekeeping between two that write even a little; the others write only much."""

COMMIT_NEWS_S = 0.002
"""How long a leader waits for an append that tells its followers what is committed, before it says
so by itself. A publisher that waits for each answer is back before that with its next record; a
reader at a follower sees a record at most this much later."""

PRESSED_COMMIT_NEWS_S = 0.008
"""The same when the loop does nothing but work: a frame to each follower, and what they make of it,
are saved for every entry that comes in time."""

HOLD_S = 0.002
"""How long EVENTUAL entries that came while others were under way wait to be written and sent with
what comes behind them, in any partition. Their publishers have been answered; a reader sees them
this much later, and a leader that is lost takes so much more with it."""

PRESSED_HOLD_S = 0.016
"""The same when the loop does nothing but work: a sixth of what EVENTUAL may lose in any case."""


class Driver:
    """Brings a host's inputs to it and carries out what follows, until it is told to stop."""

    _host: Host
    _loop: asyncio.AbstractEventLoop
    _syncer: Syncer

    def __init__(
        self,
        peers: Peers,
        *,
        config: NodeConfig,
        lag: LoopLag,
        now: Callable[[], Micros],
        hearing: Hearing,
        fail: Callable[[BaseException], None],
    ) -> None:
        """Prepare to drive a host whose listener is `hearing`; `fail` ends the node."""
        self._peers = peers
        self._config = config
        self._lag = lag
        self._now = now
        self._hearing = hearing
        self._fail = fail
        self._chores: set[asyncio.Task[None]] = set()
        self._gathering = Gathering(bytes_max=config.gather_bytes_max)
        self.pacing = CopyPacing(
            tick_s=config.tick_ms / 1_000,
            bytes_per_s_min=config.copy_bytes_per_s_min,
            bytes_per_s_max=config.copy_bytes_per_s_max,
        )
        """How fast segments are copied to and from this node."""
        self._passed_bytes = 0
        self._sync_began = 0.0
        self._is_patient = False
        """Whether a timer is set that ends the patience of what is gathered."""
        self._is_started = False
        self._is_awake = False
        self._has_news = False
        self._news_wait_s = COMMIT_NEWS_S
        self._is_pressed = False
        self._hold_s = HOLD_S
        self._holding: set[RaftGroupId] = set()
        """Partitions with entries that have not been sent."""
        self._is_halted = False
        self._is_closing = False
        self._or_fail = _OrFail(fail)

    # --- life -------------------------------------------------------------------------------

    def start(self, host: Host) -> None:
        """Begin to drive `host`. Nobody may ask for anything before."""
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._syncer = Syncer(self._loop, done=self._synced)
        self._syncer.start()
        self._is_started = True

    def halt(self) -> None:
        """Do nothing more: the node has failed."""
        self._is_halted = True

    async def finish_chores(self) -> None:
        """Wait for the work that threads are doing."""
        await asyncio.gather(*self._chores, return_exceptions=True)

    async def stop(self) -> None:
        """Write what was asked for and end; nobody may be left to ask for more."""
        while self._holding:  # what is sent may bring more along that was being gathered
            self._send_held()
        self._is_closing = True
        if self._is_started:
            await asyncio.to_thread(self._syncer.stop)

    # --- inputs -----------------------------------------------------------------------------

    def take_raft(self, messages: Iterable[tuple[RaftGroupId, Message]], via: ReplicaId) -> None:
        """Take Raft messages of many groups from the node that greeted as `via`."""
        deliver = self._host.deliver
        try:
            for group, message in messages:
                deliver(group, message, via=via)
        except Exception as failure:
            self._fail(failure)
        self.wake()

    def take_peer_message(self, message: PeerMessage, via: ReplicaId) -> None:
        """Take a message outside of Raft from the node that greeted as `via`."""
        with self._or_fail:
            self._host.deliver_from_peer(message, via=via)
        self.wake()

    def publish(self, group: RaftGroupId, publishing: Publishing) -> None:
        """Store batches in a partition this node leads; `Gathering` says with whom and when."""
        if not self._gathering.add(group, publishing, now=self._loop.time()):
            publishing.reply(LimitExceeded("gather_bytes_max", "too much waits to be stored"))
            return
        self.wake()

    # --- turns of the loop ------------------------------------------------------------------

    def wake(self) -> None:
        """Have everything that came in carried out, at the end of this turn of the loop."""
        if not self._is_awake:
            self._is_awake = True
            self._loop.call_soon(self._drive)

    def _drive(self) -> None:
        self._is_awake = False
        if self._is_halted:
            return
        host = self._host
        try:
            if self._gathering:
                self._propose_gathered(host)
            self._send_and_sync(host)
        except Exception as failure:
            self._fail(failure)
        if self._hearing.has_news:
            self._hearing.tell(self._hearing.listeners)

    def _propose_gathered(self, host: Host) -> None:
        due = self._gathering.take(
            self._unanswered, is_syncing=host.is_syncing, now=self._loop.time()
        )
        if due:
            now = self._now()
            for group, requests in due:
                replica = host.replicas.get(group)
                if replica is None:
                    for request in requests:
                        request.reply(NotLeader("the partition is not here any more"))
                    continue
                entries = shared_entries(requests)
                # Of several, one that others wait for could stay behind with one that waits.
                may_wait = len(entries) == 1 and self._has_company_for(replica)
                for shared in entries:
                    replica.publish(shared, now=now, may_wait=may_wait)
                if replica.raft.holds_entries:
                    self._hold(group)
                else:
                    replica.poke()
        # The end of a sync, and every commit, looks again by itself.
        if self._gathering and not host.is_syncing and not self._is_patient:
            self._is_patient = True
            self._loop.call_at(self._gathering.patient_until, self._end_patience)

    def _has_company_for(self, replica: PartitionReplica) -> bool:
        """Tell whether an entry that nobody waits for had better go with the next ones.

        Where nothing else is under way, waiting would save nobody anything.
        """
        return self._is_pressed or self._host.is_syncing or replica.has_uncommitted

    def _hold(self, group: RaftGroupId) -> None:
        """Leave what a partition holds back for a moment, as nobody waits for it."""
        if not self._holding:
            self._loop.call_later(self._hold_s, self._send_held)
        self._holding.add(group)

    def _send_held(self) -> None:
        held, self._holding = self._holding, set()
        if self._is_halted:
            return
        with self._or_fail:
            for group in held:
                replica = self._host.replicas.get(group)
                if replica is not None:
                    replica.send_held()
        self._drive()

    def _unanswered(self, group: RaftGroupId) -> int:
        """Return how many publishes of a partition wait for their entry's commit."""
        replica = self._host.replicas.get(group)
        return 0 if replica is None else replica.partition.acks.unanswered

    def _end_patience(self) -> None:
        self._is_patient = False
        if self._gathering:
            self._drive()

    def _send_and_sync(self, host: Host) -> None:
        outbox = host.outbox
        if outbox.raft_messages:
            self._peers.send_raft(outbox.take_raft_messages())
        if outbox.is_news_awaited and not self._has_news:
            self._has_news = True
            self._loop.call_later(self._news_wait_s, self._tell_commits)
        if outbox.peer_messages:
            for told in outbox.take_peer_messages():
                self._peers.tell(told)
        if outbox.chores:
            for chore in outbox.take_chores():
                self._do_chore(chore)
        if self._is_closing:
            return
        sync = host.begin_sync()
        if sync is not None:
            self._sync_began = time.perf_counter()
            self._syncer.submit(sync)

    def _tell_commits(self) -> None:
        self._has_news = False
        if self._host.outbox.commit_news:  # else they have travelled with entries
            self._host.outbox.release_commit_news()
            self._drive()

    def _do_chore(self, chore: Generator[Work, None, None]) -> None:
        """Do work that blocks in a thread, and carry out what follows from it."""

        async def do() -> None:
            with self._or_fail:
                await _in_threads(chore)
            self.wake()

        task = asyncio.create_task(do())
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    def _synced(self, sync: Sync, failure: BaseException | None) -> None:
        if failure is not None:
            self._fail(failure)
            return
        if not self._is_halted:
            self.pacing.round_took(time.perf_counter() - self._sync_began)
            try:
                self._host.finish_sync(sync)
            except Exception as error:
                self._fail(error)
            self._drive()

    # --- what runs as long as the node does -------------------------------------------------

    async def tick(self) -> None:
        """Let time pass for the host."""
        interval = self._config.tick_ms / 1_000
        loop = self._loop
        due = loop.time() + interval
        with closing(Business()) as business:
            while not self._is_halted:
                await asyncio.sleep(max(0.0, due - loop.time()))
                self._lag.record(loop.time() - due)
                share = business.share()
                self._adapt(pressure(share))
                self._pace_copies(share)
                # A loop that was held up does not make up for lost ticks: peers were silent, too.
                due = max(due + interval, loop.time())
                with self._or_fail:
                    self._host.tick()
                self._drive()

    def _adapt(self, pressed: float) -> None:
        """Put off more or less, for a loop that is so pressed (0 to 1)."""
        self._gathering.next_period(pressed)
        self._news_wait_s = COMMIT_NEWS_S + pressed * (PRESSED_COMMIT_NEWS_S - COMMIT_NEWS_S)
        self._is_pressed = pressed > 0
        self._hold_s = HOLD_S + pressed * (PRESSED_HOLD_S - HOLD_S)

    def _pace_copies(self, share: float) -> None:
        pace = self._host.pace
        passed, self._passed_bytes = pace.passed_bytes - self._passed_bytes, pace.passed_bytes
        pace.bytes_per_tick = self.pacing.next_tick(
            share=share, passed_bytes=passed, outrun_times=pace.outrun_times
        )

    async def keep_house(self) -> None:
        """Write segments behind, take snapshots, free what is not needed any more."""
        for number in count(1):
            await asyncio.sleep(HOUSEKEEPING_S)
            if self._is_halted:
                return
            with self._or_fail:
                await _in_threads(self._host.maintain(urgent_only=number % THOROUGH_EVERY != 0))
            self.wake()


async def _in_threads(steps: Generator[Work, None, None]) -> None:
    """Do the work that `steps` hands out in threads, one piece after the other."""
    failure: BaseException | None = None
    while True:
        try:
            work = next(steps) if failure is None else steps.throw(failure)
        except StopIteration:
            return
        failure = None
        try:
            await asyncio.to_thread(work)
        except Exception as error:
            failure = error


class _OrFail:
    """Ends the node at whatever goes wrong inside."""

    __slots__ = ("_fail",)

    def __init__(self, fail: Callable[[BaseException], None]) -> None:
        self._fail = fail

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self._fail(error)
        return True
