"""What a golden data directory holds: a bit of everything a node keeps.

The catalog (group 0) with nodes, topics, moves and producers; a partition that this node leads
(group 1) with every kind of batch, command and open business; one that it follows (group 2), whose
first leader lost the end of its log to the second; one that came and went (group 3); one that this
node was just told to join (group 4). Snapshots fall where they fall, so that some of it is in a
snapshot, some only in the write-ahead log, and most in segments.

Add to the story when a later version has more to tell; directories that are written stay as they
are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.golden.batch.samples import samples
from tests.golden.data.driving import INCARNATION, NODE, YEAR_2024, Driver

from angarium.batch import Batch, Codec, encode, stamp
from angarium.ids import (
    CATALOG_GROUP,
    Epoch,
    Incarnation,
    Index,
    Micros,
    NodeId,
    Offset,
    ProducerId,
    RaftGroupId,
    Sequence,
    Term,
    replica_id,
)
from angarium.kinds import GroupKind
from angarium.log import folder_identity
from angarium.log.folder_identity import FolderIdentity
from angarium.machine import (
    NAMED_FROM,
    Abort,
    Begin,
    Clock,
    Commit,
    Configure,
    Cursors,
    Decide,
    Finish,
    PartitionLimits,
    ProducerDelete,
    Reserve,
    SeriesDelete,
    Stage,
    Trim,
    changes,
    encode_append,
)
from angarium.machine import catalog as catalogs
from angarium.machine import encode as encode_command
from angarium.machine.changes import GroupSettings
from angarium.modes import DeliveryMode
from angarium.raft.election import TRANSFER_CONTEXT
from angarium.raft.messages import Entry, Message, MessageKind

if TYPE_CHECKING:
    from angarium.log.disk import Disk

CLUSTER_ID: Final = 0x0123_4567_89AB_CDEF_0123_4567_89AB_CDEF

ORDERS: Final = RaftGroupId(1)
PAYMENTS: Final = RaftGroupId(2)
GONE: Final = RaftGroupId(3)
LATE: Final = RaftGroupId(4)

START: Final = 70
"""Everything below is trimmed away: the whole first segment, and the beginning of the second."""

_SECOND: Final = NodeId(2)
_THIRD: Final = NodeId(3)
_INCARNATIONS: Final = {
    NODE: INCARNATION,
    _SECOND: Incarnation(0x0B00_0000_0002),
    _THIRD: Incarnation(0x0C00_0000_0003),
}


def tell(disk: Disk) -> None:
    """Write the whole story to an empty disk."""
    folder_identity.create(
        disk,
        FolderIdentity(cluster_id=CLUSTER_ID, node_id=NODE, incarnation=INCARNATION),
    )
    driver = Driver(disk)
    _form(driver)
    _fill(driver)
    _consume(driver)
    _transact(driver)
    driver.keep_house()
    _grow(driver)
    _follow(driver)
    driver.keep_house()
    _leave_business_open(driver)
    driver.close()


# --- the catalog ------------------------------------------------------------------------------


def _form(driver: Driver) -> None:
    host = driver.host
    host.form_group(CATALOG_GROUP, [host.id])
    driver.lead(CATALOG_GROUP)
    driver.decide(catalogs.Form(cluster=f"{CLUSTER_ID:032x}"))
    driver.decide(_registration(NODE))
    alone = catalogs.TopicSettings(replication=1, retention_micros=10**15)
    driver.decide(catalogs.TopicCreate(name="orders", settings=alone))
    host.form_group(ORDERS, [host.id])
    driver.lead(ORDERS)


def _grow(driver: Driver) -> None:
    """Let two more nodes in, and make, move and delete topics."""
    for node in (_SECOND, _THIRD):
        driver.decide(_registration(node))
    settings = catalogs.TopicSettings(mode=DeliveryMode.EVENTUAL, batch_bytes_max=1 << 20)
    driver.decide(catalogs.TopicCreate(name="payments", settings=settings))
    one = catalogs.TopicSettings(replication=1)
    gone = driver.decide(catalogs.TopicCreate(name="gone", settings=one))
    driver.host.form_group(GONE, [driver.host.id])
    driver.settle()
    driver.decide(catalogs.TopicDelete(topic=gone.topic))
    driver.host.remove_group(GONE)
    driver.settle()
    driver.decide(catalogs.NodeDrain(node=NODE))
    driver.decide(catalogs.TopicCreate(name="late.arrivals", settings=one))
    driver.decide(catalogs.NodeDrain(node=NODE, draining=False))
    driver.decide(catalogs.Reassign(group=LATE, replicas=(NODE,)))
    driver.host.join_group(LATE)
    driver.decide(catalogs.NodeDrain(node=_THIRD))
    driver.decide(catalogs.ProducerBlock(count=1_000))
    for name in ("billing", "mirror", "billing", "forgotten"):
        driver.decide(catalogs.ProducerOpen(name=name))
    driver.decide(catalogs.ProducerClose(name="forgotten"))


def _registration(node: NodeId) -> catalogs.NodeRegister:
    return catalogs.NodeRegister(
        incarnation=_INCARNATIONS[node],
        addresses=(("grpc", f"10.0.0.{node}:7401"), ("wire", f"10.0.0.{node}:7400")),
        labels=catalogs.Labels(region="eu", zone=f"z{node}", host=f"host-{node}"),
    )


# --- the partition that this node leads -------------------------------------------------------


def _fill(driver: Driver) -> None:
    for number in range(12):
        values = [b"order %d.%d" % (number, one) for one in range(5)]
        driver.publish(ORDERS, [encode(values, timestamps=YEAR_2024 + number)])
    driver.publish(ORDERS, [_unsent(samples()[name]) for name in ("plain", "timed", "same-times")])
    driver.submit(ORDERS, Reserve(count=7))
    for sequence, codec in enumerate((Codec.NONE, Codec.LZ4, Codec.ZSTD)):
        driver.publish(ORDERS, [_keyed(sequence, codec)])
    driver.publish(ORDERS, [_keyed(2, Codec.ZSTD)])  # a duplicate: it leaves no trace
    driver.submit(ORDERS, Trim(start_offset=Offset(START)))
    driver.submit(ORDERS, Configure(limits=PartitionLimits(producers_max=50, attempts_max=4)))
    driver.submit(ORDERS, Clock())


def _unsent(buffer: bytearray) -> bytearray:
    """Return a sample as its client sent it."""
    batch = Batch.parse(buffer)
    columns = list(batch)
    return encode(
        [one.value for one in columns],
        timestamps=[one.timestamp for one in columns],
        expires_at=[one.expires_at for one in columns],
        deliver_at=[one.deliver_at for one in columns],
    )


def _keyed(part: int, codec: Codec) -> bytearray:
    """Return 20 records of producer 7 with keys, headers and nulls."""
    count = 20
    return encode(
        [None if one % 7 == 3 else b"value %d " % one * 4 for one in range(count)],
        keys=[None if one % 5 == 4 else b"key %d" % (one % 3) for one in range(count)],
        headers=[
            {"content-type": b"text/plain", "trace": None} if one % 2 else None
            for one in range(count)
        ],
        timestamps=[YEAR_2024 + 10 * part + one for one in range(count)],
        producer_id=ProducerId(7),
        epoch=Epoch(1),
        sequence=Sequence(part * count),
        codec=codec,
    )


# --- its consumer groups ----------------------------------------------------------------------


def _consume(driver: Driver) -> None:
    for kind in GroupKind:
        opening = changes.Open(kind.name.lower(), kind, Offset(START))
        driver.submit(ORDERS, Cursors(changes=(opening,)))
    groups = driver.host.replicas[ORDERS].partition.machine.groups.by_name
    generation = {name: Index(group.generation) for name, group in groups.items()}
    stream, queue, key, checkpoint = (kind.name.lower() for kind in GroupKind)
    later = Micros(YEAR_2024 + 60_000_000)
    driver.submit(
        ORDERS,
        Cursors(
            changes=(
                changes.Ack(stream, generation[stream], (70, 90)),
                changes.Ack(queue, generation[queue], (73, 78, 80, 81, 83, 113)),
                changes.Retry(queue, generation[queue], Offset(79), 2, later, "timed out"),
                changes.DeadLetter(queue, generation[queue], Offset(82), "poison"),
                changes.DeadLetter(queue, generation[queue], Offset(81), "late"),
                changes.Members(key, 1, (changes.Member("ada", 1), changes.Member("grace", 2))),
                changes.Pause(key, paused=True),
                changes.Set(key, GroupSettings(max_attempts=9, dead_letter_topic="graves")),
                changes.Seek(checkpoint, Offset(86)),
                changes.Open("short-lived", GroupKind.STREAM, Offset(START)),
                changes.Delete("short-lived"),
            )
        ),
    )


# --- its transactions -------------------------------------------------------------------------


def _transact(driver: Driver) -> None:
    """Commit one transaction, abort one, and decide as the home of three others."""
    for part, value in enumerate((b"staged one", b"staged two")):
        driver.submit(ORDERS, _stage("daily", 1, part=part, values=[value]))
    driver.submit(ORDERS, Commit(name="daily", epoch=Epoch(0), sequence=Sequence(1), stages=("s",)))
    driver.submit(ORDERS, _stage("daily", 2, part=0, values=[b"never seen"]))
    driver.submit(ORDERS, Abort(name="daily", epoch=Epoch(0), sequence=Sequence(2)))
    for name in ("finished", "committed", "undecided", "dropped"):
        begin = Begin(
            name=name, epoch=Epoch(2), sequence=Sequence(1), participants=(ORDERS, PAYMENTS)
        )
        driver.submit(ORDERS, begin)
    for name in ("finished", "committed"):
        decision = Decide(
            name=name,
            epoch=Epoch(2),
            sequence=Sequence(1),
            commit=True,
            stages=((ORDERS, ("a",)), (PAYMENTS, ("a", "b"))),
        )
        driver.submit(ORDERS, decision)
    driver.submit(ORDERS, Finish(name="finished", epoch=Epoch(2), sequence=Sequence(1)))
    abort = Decide(name="dropped", epoch=Epoch(2), sequence=Sequence(1), commit=False)
    driver.submit(ORDERS, abort)
    driver.submit(ORDERS, SeriesDelete(name="dropped"))
    # Open while the snapshot is taken, so that its batches lie in a side file.
    driver.submit(ORDERS, _stage("nightly", 4, part=0, values=[b"waits", b"for"]))
    driver.submit(ORDERS, _stage("nightly", 4, part=1, values=[b"its commit"]))


def _stage(
    name: str, sequence: int, *, part: int, values: list[bytes], home: RaftGroupId | None = None
) -> Stage:
    return Stage(
        name=name,
        epoch=Epoch(0),
        sequence=Sequence(sequence),
        home=home,
        stage="s",
        part=part,
        batches=bytes(encode(values, timestamps=YEAR_2024)),
        acks=(("queue", 10**6, 120, 121),) if part else (),
    )


# --- after the last snapshot ------------------------------------------------------------------


def _leave_business_open(driver: Driver) -> None:
    """Write what only the write-ahead log has when the node stops."""
    driver.decide(catalogs.ProducerOpen(name="mirror"))
    driver.keep_house()  # the log may forget by now what the first of its files holds
    driver.submit(ORDERS, _stage("weekly", 1, part=0, values=[b"asks its home"], home=PAYMENTS))
    named = encode([b"named"], timestamps=YEAR_2024, producer_id=NAMED_FROM, sequence=Sequence(0))
    other = encode(
        [b"closed"], timestamps=YEAR_2024, producer_id=ProducerId(8), sequence=Sequence(0)
    )
    driver.publish(ORDERS, [named, other])
    driver.submit(ORDERS, ProducerDelete(producer=ProducerId(8)))
    driver.submit(ORDERS, Reserve(count=3))
    driver.publish(ORDERS, [encode([b"the last one"], timestamps=YEAR_2024)])


# --- the partition that this node follows -----------------------------------------------------


def _follow(driver: Driver) -> None:
    """Follow one leader, vote for another, and give up the first one's uncommitted entries."""
    host = driver.host
    replicas = {node: replica_id(node, one) for node, one in _INCARNATIONS.items()}
    host.form_group(PAYMENTS, sorted(replicas.values()))
    driver.settle()
    first = [_entry(2, index, offset=index - 2) for index in range(2, 9)]
    second = [_entry(3, index, offset=index - 2) for index in range(6, 12)]

    def append(leader: NodeId, entries: list[Entry], commit: int) -> Message:
        before = entries[0].index - 1
        return Message(
            kind=MessageKind.APPEND,
            to=host.id,
            sender=replicas[leader],
            term=entries[0].term,
            index=Index(before),
            log_term=Term(1) if before == 1 else Term(2),
            entries=tuple(entries),
            commit=Index(commit),
        )

    vote = Message(
        kind=MessageKind.VOTE,
        to=host.id,
        sender=replicas[_THIRD],
        term=Term(3),
        index=Index(8),
        log_term=Term(2),
        context=TRANSFER_CONTEXT,  # or the first leader's lease would keep us from voting
    )
    driver.deliver(PAYMENTS, append(_SECOND, first, 5), vote, append(_THIRD, second, 9))


def _entry(term: int, index: int, *, offset: int) -> Entry:
    """Return an entry as a leader writes it: of one record, or at times a command."""
    time = Micros(YEAR_2024 + index * 1_000 + term)
    if index % 4 == 0:
        opening = changes.Open(f"by-term-{term}", GroupKind.STREAM, Offset(0))
        data = encode_command(Cursors(time=time, changes=(opening,)))
    else:
        offset -= index // 4
        batch = encode([b"payment %d of term %d" % (index, term)], timestamps=YEAR_2024)
        stamp(batch, base_offset=Offset(offset), term=Term(term), append_time=time)
        data = encode_append([batch])
    return Entry(Term(term), Index(index), data)
