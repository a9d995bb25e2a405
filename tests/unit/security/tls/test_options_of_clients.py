"""What a client is told about TLS."""

from __future__ import annotations

import pytest

from angarium.errors import InvalidArgument
from angarium.security.tls import TlsOptions, client_tls


def test_without_any_option_tls_is_not_spoken() -> None:
    assert not TlsOptions().is_on
    assert client_tls(TlsOptions()) is None
    assert TlsOptions.from_environment({}) == TlsOptions()


def test_the_environment_says_the_same_as_the_options() -> None:
    options = TlsOptions(ca="ca.crt", cert="a.crt", key="a.key", server_name="node.example.org")
    variables = {
        "ANGARIUM_TLS_CA": "ca.crt",
        "ANGARIUM_TLS_CERT": "a.crt",
        "ANGARIUM_TLS_KEY": "a.key",
        "ANGARIUM_TLS_SERVER_NAME": "node.example.org",
    }
    assert options.as_environment() == variables
    assert TlsOptions.from_environment({**variables, "ANGARIUM_SERVERS": "a:1"}) == options


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"key": "a.key"}, "tls.cert"),
        ({"cert": "a.crt"}, "whom to believe"),
        ({"server_name": "a"}, "whom to believe"),
    ],
)
def test_options_that_make_no_sense_alone_are_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        TlsOptions(**given)
