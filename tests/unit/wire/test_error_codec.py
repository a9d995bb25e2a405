"""Errors travel: the same class, message and details arrive."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from angarium.errors import (
    RETRY_AFTER_S_MAX,
    AngariumError,
    DiskFull,
    Fault,
    LimitExceeded,
    NotLeader,
    OffsetOutOfRange,
    QuotaExceeded,
    retry_after_of,
)
from angarium.raft.errors import UncommittedLimit
from angarium.wire import DeadlineExceeded, RemoteError
from angarium.wire.error_codec import Detail, Failure, error_of, failure_of
from angarium.wire.wire_limits import FRAME_BYTES_LEAST

if TYPE_CHECKING:
    import pytest


def over_the_wire(error: BaseException) -> AngariumError:
    packed = msgspec.msgpack.encode(failure_of(error))
    return error_of(msgspec.msgpack.decode(packed, type=Failure))


def test_an_error_arrives_as_the_same_class_with_its_details() -> None:
    arrived = over_the_wire(OffsetOutOfRange(offset=7, start=10, end=20))
    assert type(arrived) is OffsetOutOfRange
    assert (arrived.offset, arrived.start, arrived.end) == (7, 10, 20)
    assert str(arrived) == "offset 7 is outside [10, 20)"


def test_a_hint_to_the_leader_survives_also_when_there_is_none() -> None:
    for leader in (None, 3):
        arrived = over_the_wire(NotLeader(leader=leader))
        assert isinstance(arrived, NotLeader)
        assert arrived.leader == leader
        assert arrived.retriable


def test_the_name_of_a_limit_survives() -> None:
    arrived = over_the_wire(LimitExceeded("streams_max", "too many"))
    assert isinstance(arrived, LimitExceeded)
    assert (arrived.limit, str(arrived)) == ("streams_max", "streams_max: too many")


def test_when_to_come_again_survives_and_is_not_believed_blindly() -> None:
    arrived = over_the_wire(QuotaExceeded("bytes_in", "used up", retry_after=1.5))
    assert type(arrived) is QuotaExceeded
    assert (arrived.limit, retry_after_of(arrived)) == ("bytes_in", 1.5)
    assert retry_after_of(over_the_wire(LimitExceeded("streams_max", "too many"))) is None
    for told in ("soon", -1, True, float("nan"), None):
        odd = error_of(Failure(QuotaExceeded.code, "", details={"retry_after": told}))
        assert retry_after_of(odd) is None
    endless = error_of(Failure(QuotaExceeded.code, "", details={"retry_after": 1e300}))
    assert retry_after_of(endless) == RETRY_AFTER_S_MAX


def test_two_classes_of_one_code_arrive_as_the_one_nearer_to_the_root() -> None:
    arrived = over_the_wire(UncommittedLimit("wait"))
    assert type(arrived) is LimitExceeded
    assert arrived.limit == "uncommitted_bytes_max"


def subclasses_of(error_class: type[AngariumError]) -> list[type[AngariumError]]:
    below = error_class.__subclasses__()
    return below + [deeper for direct in below for deeper in subclasses_of(direct)]


def test_every_class_with_a_code_of_its_own_arrives_as_itself_or_its_namesake() -> None:
    for error_class in subclasses_of(AngariumError):
        if "code" not in vars(error_class) or "<locals>" in error_class.__qualname__:
            continue
        arrived = error_of(Failure(error_class.code, "why"))
        assert arrived.code == error_class.code
        assert issubclass(error_class, type(arrived))
        assert str(arrived) == "why"


def test_an_unknown_code_keeps_what_its_sender_said_about_it() -> None:
    arrived = error_of(Failure("FROM_THE_FUTURE", "later", True, "caller"))
    assert isinstance(arrived, RemoteError)
    assert (arrived.code, arrived.retriable, arrived.fault) == (
        "FROM_THE_FUTURE",
        True,
        Fault.CALLER,
    )
    assert failure_of(arrived).code == "FROM_THE_FUTURE"
    assert error_of(Failure("X", fault="nobody's")).fault is Fault.CLUSTER


def test_a_mistake_of_our_own_tells_the_peer_nothing_and_the_log_everything(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR):
        arrived = over_the_wire(KeyError("a secret"))
    assert arrived.code == "INTERNAL"
    assert "secret" not in str(arrived)
    assert "a secret" in caplog.text


def test_details_cannot_replace_what_the_class_says() -> None:
    hostile: dict[str, Detail] = {
        "code": "FINE",
        "retriable": False,
        "_x": 1,
        "args": "no",
        "not a name": 1,
        "limit": "n",
    }
    arrived = error_of(Failure("RESOURCE_EXHAUSTED", "m", details=hostile))
    assert isinstance(arrived, LimitExceeded)
    assert (arrived.code, arrived.retriable, arrived.args) == ("RESOURCE_EXHAUSTED", True, ("m",))
    assert vars(arrived) == {"limit": "n"}


def test_a_huge_error_is_cut_until_it_fits_the_smallest_frame() -> None:
    error = DiskFull("\N{GRINNING FACE}" * 1_000_000)
    for number in range(1000):
        error.__dict__[f"detail_{number}"] = "\N{GRINNING FACE}" * 256
    error.__dict__["too_long"] = "x" * 100_000
    error.__dict__["too_big"] = 1 << 70
    packed = msgspec.msgpack.encode(failure_of(error))
    assert len(packed) < FRAME_BYTES_LEAST - 1024
    assert type(over_the_wire(error)) is DiskFull


def test_an_unknown_outcome_stays_one() -> None:
    assert type(over_the_wire(DeadlineExceeded("late"))) is DeadlineExceeded


@given(
    st.text(max_size=30),
    st.text(max_size=30),
    st.dictionaries(
        st.text(max_size=12), st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5)
    ),
)
def test_whatever_a_peer_says_becomes_an_error_of_the_tree(
    code: str, message: str, details: dict[str, Detail]
) -> None:
    arrived = error_of(Failure(code, message, details=details))
    assert isinstance(arrived, AngariumError)
    assert arrived.code == code
