"""Secrets stay out of sight; tokens have a form of their own; headers are read without quoting."""

from __future__ import annotations

import base64
import copy
import pickle
import traceback

import pytest

from angarium.errors import Unauthenticated
from angarium.security.credentials import Bearer, Password, credentials_in
from angarium.security.secret import Secret
from angarium.security.tokens import is_token, new_token, token_digest


def test_a_secret_shows_itself_to_nobody_who_does_not_ask() -> None:
    secret = Secret("hunter2")
    for shown in (repr(secret), str(secret), f"{secret}", f"{secret:>9}"):
        assert "hunter2" not in shown
    assert "hunter2" not in repr(Password("alice", secret))
    assert secret.reveal() == "hunter2"
    assert pickle.loads(pickle.dumps(secret)) == secret == copy.deepcopy(secret)
    assert secret != Secret("hunter3")
    assert not Secret("")


def test_a_token_has_its_own_form_and_is_kept_as_a_digest() -> None:
    token = new_token().reveal()
    assert is_token(token)
    assert token.startswith("angt_")
    assert len(token_digest(token)) == 32
    assert new_token() != new_token()


@pytest.mark.parametrize(
    "text",
    ["", "angt_", "angt_" + "ä" * 43, "angt_" + "A" * 44, "A" * 48, "angt_" + "A" * 1_000_000],
)
def test_what_is_no_token_is_seen_at_once(text: str) -> None:
    assert not is_token(text)


def test_headers_bring_passwords_or_tokens() -> None:
    basic = base64.b64encode("älice:pass:word".encode()).decode()
    assert credentials_in(f"Basic {basic}") == Password("älice", Secret("pass:word"))
    assert credentials_in("bearer  abc") == Bearer(Secret("abc"))


@pytest.mark.parametrize(
    "header",
    [
        "",
        "hunter2",
        "Bearer",
        "Bearer ",
        "Bearer hunter2 hunter2",
        "Bearer hünter2",
        "Bearer hunter2\x00",
        "Basic hunter2",
        "Basic " + base64.b64encode(b"hunter2").decode(),
        "Basic " + base64.b64encode(b":hunter2").decode(),
        "Basic " + base64.b64encode(b"\xff:hunter2").decode(),
        "Digest hunter2",
        "Bearer " + "hunter2" * 200_000,
    ],
)
def test_headers_that_make_no_sense_are_refused_and_not_quoted(header: str) -> None:
    with pytest.raises(Unauthenticated) as caught:
        credentials_in(header)
    told = "".join(traceback.format_exception_only(caught.value))
    assert "hunter2" not in told
    assert len(told) < 300
