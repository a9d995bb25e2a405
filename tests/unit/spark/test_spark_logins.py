"""Who a query of Spark is, by its options or the driver's environment; never to be seen."""

from __future__ import annotations

import pytest

from angarium.client.login import LoginOptions
from angarium.errors import InvalidArgument
from angarium.security import Secret
from angarium.spark.options import read_options
from angarium.spark.write_options import write_options

PLANTED = "planted-secret"


@pytest.mark.parametrize(
    ("given", "login"),
    [
        ({"token": PLANTED}, LoginOptions(token=Secret(PLANTED))),
        (
            {"user": "alice", "password": PLANTED},
            LoginOptions(user="alice", password=Secret(PLANTED)),
        ),
    ],
)
def test_options_say_who_and_show_nothing(given: dict[str, str], login: LoginOptions) -> None:
    read = read_options({"subscribe": "orders", **given}, is_stream=False)
    write = write_options({"topic": "orders", **given}, is_stream=False)
    assert read.login == write.login == login
    assert PLANTED not in repr(read) + repr(write)


def test_the_drivers_environment_counts_where_no_option_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANGARIUM_TOKEN", PLANTED)
    read = read_options({"subscribe": "orders"}, is_stream=True)
    assert read.login == LoginOptions(token=Secret(PLANTED))


@pytest.mark.parametrize(
    "half", [{"user": "alice"}, {"password": PLANTED}, {"user": "a", "token": PLANTED}]
)
def test_half_a_login_is_refused_on_the_driver(half: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        read_options({"subscribe": "orders", **half}, is_stream=False)
    assert PLANTED not in str(caught.value)
