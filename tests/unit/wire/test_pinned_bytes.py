"""The bytes of wire version 1, written down: a change here is a new version, not a fix."""

from __future__ import annotations

from angarium.ids import Index, RaftGroupId, ReplicaId, Term
from angarium.raft.messages import Entry, Message, MessageKind
from angarium.wire import Hello, Role
from angarium.wire.decoder import FrameDecoder
from angarium.wire.error_codec import Failure
from angarium.wire.frames import FrameKind, Header, frame_head
from angarium.wire.handshake import MAGIC, greeting_in
from angarium.wire.raft_codec import RAFT_OPERATION, packed_messages, unpacked_messages

REQUEST = (
    "22000000" "674499b3" "06" "00" "1000" "02000000" "2a00000000000000"  # prefix
    "6869" "000000000000"  # header and padding
    "7061"  # payload
)  # fmt: skip
HELLO = (
    "c0000000" "dbb64b6e" "01" "00" "0000" "a5000000" "414e47415249554d"
    "8c" "a4726f6c65" "a470656572" "a7636c7573746572" "a26331" "a46e6f6465" "01"
    "ab696e6361726e6174696f6e" "02" "a86665617475726573" "80" "a461757468" "c400"
    "a8736f667477617265" "a3302e31" "ab76657273696f6e5f6d696e" "01"
    "ab76657273696f6e5f6d6178" "01" "af6672616d655f62797465735f6d6178" "ce04000000"
    "b06865616465725f62797465735f6d6178" "ce00040000"
    "b373747265616d5f77696e646f775f6279746573" "ce00100000" "000000"
)  # fmt: skip
APPEND = (
    "16000000" "919e0402" "0303" "0707" "0b0a00c200c400" "919407" "0c" "04" "00" "c0" "64617461"
)  # fmt: skip


def framed(kind: int, operation: int, frame_id: int, header: Header, *payload: bytes) -> str:
    head, _ = frame_head(
        kind,
        operation,
        frame_id,
        header,
        payload,
        frame_bytes_max=1 << 20,
        header_bytes_max=1 << 20,
    )
    return (head + b"".join(payload)).hex()


def test_a_request() -> None:
    assert framed(FrameKind.REQUEST, 16, 42, b"hi", b"pa") == REQUEST
    decoder = FrameDecoder(frame_bytes_max=1 << 20, header_bytes_max=1 << 20)
    (frame,) = decoder.feed(bytes.fromhex(REQUEST))
    assert (frame.kind, frame.operation, frame.id) == (FrameKind.REQUEST, 16, 42)
    assert (frame.header, bytes(frame.payload)) == (b"hi", b"pa")


def test_a_greeting() -> None:
    hello = Hello(
        role=Role.PEER,
        cluster="c1",
        node=1,
        incarnation=2,
        software="0.1",
        version_min=1,
        version_max=1,
        frame_bytes_max=64 << 20,
        header_bytes_max=256 << 10,
        stream_window_bytes=1 << 20,
    )
    assert framed(FrameKind.HELLO, 0, MAGIC, hello) == HELLO
    decoder = FrameDecoder(frame_bytes_max=1 << 20, header_bytes_max=1 << 20)
    (frame,) = decoder.feed(bytes.fromhex(HELLO))
    assert greeting_in(frame) == hello


def test_a_failure() -> None:
    failure = Failure("NOT_LEADER", "ask 3", True, "cluster", {"leader": 3})
    fields = bytes.fromhex(framed(FrameKind.FAILURE, 1, 1, failure))[24:]
    assert fields.rstrip(b"\0").hex() == (
        "84" "a4636f6465" "aa4e4f545f4c4541444552" "a76d657373616765" "a561736b2033"
        "a9726574726961626c65" "c3" "a764657461696c73" "81" "a66c6561646572" "03"
    )  # fmt: skip


def test_a_raft_append() -> None:
    message = Message(
        kind=MessageKind.APPEND,
        to=ReplicaId(3),
        sender=ReplicaId(3),
        term=Term(7),
        log_term=Term(7),
        index=Index(11),
        commit=Index(10),
        entries=(Entry(Term(7), Index(12), b"data"),),
    )
    (frame,) = packed_messages([(RaftGroupId(4), message)], frame_bytes_max=1 << 20)
    assert RAFT_OPERATION == 1
    assert (frame.header + b"".join(frame.payload)).hex() == APPEND
    raw = bytes.fromhex(APPEND)
    assert unpacked_messages(raw[:4], memoryview(raw[4:])) == [(RaftGroupId(4), message)]
