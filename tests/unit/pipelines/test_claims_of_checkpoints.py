"""What a checkpoint says of itself, and whom it is refused to."""

from __future__ import annotations

import msgspec
import pytest

from angarium.pipelines.claims import Claim, difference

OWN = Claim(kind="analytics", state=2, of="windows of 60 s")


def test_a_checkpoint_is_ours_if_it_says_so() -> None:
    assert difference(msgspec.json.encode(OWN), OWN) is None
    # Somebody newer may say more.
    assert difference(b'{"kind":"sql","author":"me"}', Claim(kind="sql")) is None


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (Claim(kind="mirror"), "is one of mirror, not of analytics"),
        (
            Claim(kind="analytics", state=3, of="windows of 60 s"),
            "was made by another version of analytics (its state is 3, not 2)",
        ),
        (
            Claim(kind="analytics", state=2, of="windows of 5 s"),
            "is for windows of 5 s, not for windows of 60 s",
        ),
    ],
)
def test_a_checkpoint_of_something_else_says_what_it_is(told: Claim, why: str) -> None:
    assert difference(msgspec.json.encode(told), OWN) == why


def test_a_damaged_word_is_nobodys() -> None:
    assert difference(b"{", OWN) == "has a damaged angarium-pipeline.json"
