"""The section `[tls]`: all that is needed, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from angarium.app.security_settings import TlsSettings
from angarium.app.settings import InvalidSettings
from angarium.app.settings_problems import open_door
from angarium.app.sources import environment_of, load_settings

FILES = {
    "ANGARIUM_TLS_CERTIFICATE": "/etc/node.crt",
    "ANGARIUM_TLS_PRIVATE_KEY": "/etc/node.key",
    "ANGARIUM_TLS_AUTHORITIES": "/etc/ca.crt",
}


def test_without_a_certificate_there_is_no_tls() -> None:
    settings = load_settings(environment={})
    assert not settings.tls.is_on
    assert settings.tls.opened() is None


def test_the_environment_gives_the_files() -> None:
    settings = load_settings(environment=FILES)
    assert settings.tls.is_on
    assert settings.tls.certificate == Path("/etc/node.crt")
    assert settings.tls.client_certificates == "none"
    assert load_settings(environment=environment_of(settings)) == settings


def test_what_clients_are_told_in_the_environment_is_no_setting_of_a_node() -> None:
    environment = {"ANGARIUM_TLS_CA": "ca", "ANGARIUM_TLS_CERT": "a", "ANGARIUM_TLS_KEY": "b"}
    assert not load_settings(environment=environment).tls.is_on
    with pytest.raises(InvalidSettings, match="there is no such setting"):
        load_settings(environment={"ANGARIUM_TLS_CERTIFICAT": "a"})


@pytest.mark.parametrize("missing", list(FILES))
def test_half_of_it_is_refused(missing: str) -> None:
    given = {name: value for name, value in FILES.items() if name != missing}
    with pytest.raises(InvalidSettings, match=r"tls\."):
        load_settings(environment=given)


def test_clients_can_only_be_asked_where_their_authorities_are_known() -> None:
    own, key, ca = Path("a"), Path("b"), Path("c")
    TlsSettings(certificate=own, private_key=key, cluster_authorities=ca)
    with pytest.raises(ValueError, match="authorities: "):
        TlsSettings(
            certificate=own,
            private_key=key,
            cluster_authorities=ca,
            client_certificates="optional",
        )


def test_a_listener_that_others_can_reach_says_what_is_missing() -> None:
    assert "TLS ([tls] has no certificate)" in open_door("10.0.0.1", has_tls=False)
    with_tls = open_door("10.0.0.1", has_tls=True)
    assert "has no certificate" not in with_tls
    assert "authentication" in with_tls
