"""Which names a node answers to over HTTP: its own, and those that its settings add."""

from __future__ import annotations

import pytest

from angarium.app.composition import hosts_of
from angarium.app.settings import InvalidSettings
from angarium.app.sources import load_settings, variable


def test_a_node_answers_to_where_it_listens_and_is_found() -> None:
    hosts = hosts_of(
        load_settings(
            environment={
                "ANGARIUM_LISTEN_HOST": "inside.example",
                "ANGARIUM_LISTEN_INSECURE": "true",
                "ANGARIUM_ADVERTISE_HOST": "Node-1.Example.org",
                "ANGARIUM_HTTP_HOSTS": "broker.example, *.lan",
            }
        )
    )
    ours = ("inside.example:7402", "node-1.example.org", "broker.example", "a.lan", "localhost")
    assert all(hosts.has(one) for one in ours)
    assert not hosts.has("evil.example")
    assert not hosts_of(load_settings()).has("node-1.example.org")


@pytest.mark.parametrize(
    "wrong", ["http://broker.example", "broker.example:80", "a b", "**", "*.*.example", ".", "a/b"]
)
def test_what_names_no_host_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidSettings, match="is not a host name"):
        load_settings(environment={variable("http", "hosts"): wrong})
