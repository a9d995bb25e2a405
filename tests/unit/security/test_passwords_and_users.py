"""Passwords as hashes: what matches, what is refused, and what a second look costs."""

from __future__ import annotations

import asyncio
import time

import pytest

from angarium.errors import LimitExceeded
from angarium.security import PasswordHash, Users
from angarium.security import users as users_page

QUICK = "$scrypt$ln=4,r=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$"


def quick(password: str) -> str:
    """Return a hash that costs nothing, for tests that are about something else."""
    empty = PasswordHash.parse(QUICK + "A" * 43)
    digest = empty._hashed(password, 32)
    return str(PasswordHash(cost_log2=4, block=1, parallel=1, salt=empty.salt, digest=digest))


def test_a_hash_matches_its_password_and_no_other() -> None:
    made = PasswordHash.of("pässword: with a colon")
    assert made.matches("pässword: with a colon")
    assert not made.matches("password: with a colon")
    assert PasswordHash.parse(str(made)) == made
    assert str(made).startswith("$scrypt$ln=14,r=8,p=5$")


def test_two_hashes_of_one_password_have_nothing_in_common() -> None:
    one, two = PasswordHash.of("same"), PasswordHash.of("same")
    assert one.salt != two.salt
    assert one.digest != two.digest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no scrypt hash"),
        ("plain text", "no scrypt hash"),
        ("$scrypt$ln=14,r=8,p=1$c2FsdA$???", "base64"),
        ("$scrypt$ln=14,r=8,p=1$c2FsdA$AAAA", "less than 16 bytes"),
        ("$scrypt$ln=20,r=8,p=1$c2FsdA$" + "A" * 43, "memory"),
        ("$scrypt$ln=14,r=8,p=99$c2FsdA$" + "A" * 43, "more work"),
        ("$scrypt$ln=14,r=0,p=1$c2FsdA$" + "A" * 43, "more work"),
    ],
)
def test_what_is_no_hash_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        PasswordHash.parse(text)


def test_a_second_look_costs_no_hash() -> None:
    async def story() -> None:
        users = Users({"alice": str(PasswordHash.of("right"))})
        assert await users.knows("alice", "right")
        assert not await users.knows("alice", "wrong")
        began = time.perf_counter()
        for _ in range(1_000):
            assert await users.knows("alice", "right")
            assert not await users.knows("alice", "wrong")
        # Two thousand hashes would be minutes.
        assert time.perf_counter() - began < 30

    asyncio.run(story())


def test_names_and_passwords_cannot_be_shifted_into_each_other() -> None:
    async def story() -> None:
        users = Users({"ab": quick("c"), "a": quick("zz")})
        assert await users.knows("ab", "c")
        assert not await users.knows("a", "bc")
        assert not await users.knows("nobody", "c")
        assert not await users.knows("ab", "c" * 5_000)

    asyncio.run(story())


def test_guesses_displace_nobody_who_is_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users_page, "REMEMBERED_MAX", 4)

    async def story() -> None:
        users = Users({"a": quick("right")})
        assert await users.knows("a", "right")
        for number in range(20):
            assert not await users.knows("a", f"guess {number}")
        assert len(users._wrong) == 4
        assert len(users._right) == 1

    asyncio.run(story())


def test_a_flood_of_guesses_is_refused_before_it_costs_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(users_page, "WAITING_MAX", 3)

    async def story() -> None:
        users = Users({"a": quick("right")})
        answers = await asyncio.gather(
            *(users.knows("a", f"guess {number}") for number in range(20)), return_exceptions=True
        )
        assert sum(isinstance(one, LimitExceeded) for one in answers) == 15
        assert sum(one is False for one in answers) == 5
        # Those who ask the same wait for one check.
        same = await asyncio.gather(*(users.knows("a", "right") for _ in range(20)))
        assert same == [True] * 20

    asyncio.run(story())
