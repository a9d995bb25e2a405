"""Which pods of a slice are nodes, and at which port."""

from __future__ import annotations

import msgspec

from angarium.addresses import Address
from angarium.discovery.endpoint_slices import EndpointSlice


def places(content: str) -> list[Address]:
    one = msgspec.json.decode(content, type=EndpointSlice)
    return one.node_addresses(port_name="wire", port=7400)


def test_pods_are_at_the_port_of_that_name() -> None:
    assert places(
        '{"ports": [{"name": "http", "port": 7402}, {"name": "wire", "port": 7410}],'
        ' "endpoints": [{"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2"]}]}'
    ) == [Address("10.0.0.1", 7410), Address("10.0.0.2", 7410)]


def test_without_such_a_port_at_the_usual_one() -> None:
    assert places('{"ports": null, "endpoints": [{"addresses": ["10.0.0.1"]}]}') == [
        Address("10.0.0.1", 7400)
    ]
    assert places('{"ports": [{"port": 1}], "endpoints": [{"addresses": ["fd00::1"]}]}') == [
        Address("fd00::1", 7400)
    ]


def test_pods_that_are_not_ready_count() -> None:
    # No node is ready before it has found the others.
    not_ready = '{"ready": false, "serving": false, "terminating": false}'
    content = '{"endpoints": [{"addresses": ["10.0.0.1"], "conditions": %s}]}'
    assert places(content % not_ready) == [Address("10.0.0.1", 7400)]


def test_pods_that_are_being_deleted_count_as_long_as_they_serve() -> None:
    content = '{"endpoints": [{"addresses": ["10.0.0.1"], "conditions": %s}]}'
    assert places(content % '{"ready": false, "serving": true, "terminating": true}')
    assert not places(content % '{"ready": false, "serving": false, "terminating": true}')


def test_an_endpoint_is_one_pod_whatever_addresses_it_has() -> None:
    assert places(
        '{"endpoints": [{"addresses": ["10.0.0.1", "10.0.0.9"]}, {"addresses": []}]}'
    ) == [Address("10.0.0.1", 7400)]


def test_a_slice_without_endpoints_is_empty() -> None:
    assert places('{"endpoints": null, "metadata": {"name": "a"}, "addressType": "IPv4"}') == []
