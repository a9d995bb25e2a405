"""Where a client's login comes from, and that nobody sees it."""

from __future__ import annotations

import pickle

import pytest

from angarium.client import Client
from angarium.client.login import Login, LoginOptions
from angarium.errors import InvalidArgument
from angarium.security import Secret


def shown(login: Login) -> str:
    return repr(login)


def test_what_is_given_wins_over_the_environment() -> None:
    environment = {"ANGARIUM_TOKEN": "hidden-token", "ANGARIUM_USER": "env"}
    assert shown(Login.of(environment=environment)) == "Login(token)"
    given = Login.of(user="alice", password="hidden", environment=environment)
    assert shown(given) == "Login(user='alice')"
    assert given.greeting() == b"-", "a certificate does not stand in for the password"
    assert Login.of(environment={}).greeting() == b""
    assert Login.nobody().greeting() == b"-"
    assert Login.of(token="hidden", environment={}).greeting() == b"hidden"
    assert Login.of(token=lambda: "fresh", environment={}).greeting() == b"fresh"


def test_a_password_may_come_from_the_environment_for_a_user_that_is_given() -> None:
    login = Login.of(user="alice", environment={"ANGARIUM_PASSWORD": "hidden"})
    assert shown(login) == "Login(user='alice')"
    both = {"ANGARIUM_USER": "bob", "ANGARIUM_PASSWORD": "hidden"}
    assert shown(Login.of(environment=both)) == "Login(user='bob')"
    assert shown(Login.of(environment={})) == "Login(none)"


@pytest.mark.parametrize(
    "half", [{"user": "alice"}, {"password": "hidden"}, {"user": "a", "token": "hidden"}]
)
def test_half_a_login_is_refused_without_quoting_it(
    half: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANGARIUM_PASSWORD", raising=False)
    with pytest.raises(InvalidArgument) as caught:
        Client(**half)  # type: ignore[arg-type]
    assert "hidden" not in str(caught.value)


def test_options_travel_and_are_compared_but_not_shown() -> None:
    options = LoginOptions(user="alice", password=Secret("hidden"), token=Secret("hidden"))
    assert "hidden" not in repr(options)
    assert pickle.loads(pickle.dumps(options)) == options
    assert len({options, pickle.loads(pickle.dumps(options))}) == 1
    alone = LoginOptions.from_environment({"ANGARIUM_USER": "a", "ANGARIUM_PASSWORD": "b"})
    assert alone.as_environment() == {"ANGARIUM_USER": "a", "ANGARIUM_PASSWORD": "b"}
