"""What Kubernetes calls EndpointSlices, as far as it concerns us: which pods, at which ports."""

from __future__ import annotations

import msgspec

from angarium.addresses import Address


class Meta(msgspec.Struct):
    """What every object and list has."""

    name: str = ""
    resourceVersion: str = ""  # noqa: N815  (Kubernetes' own name)
    continue_: str = msgspec.field(default="", name="continue")


class Conditions(msgspec.Struct):
    """How an endpoint is; what is left out is not known."""

    serving: bool | None = None
    terminating: bool | None = None


class Endpoint(msgspec.Struct):
    """One pod."""

    addresses: list[str] = []
    conditions: Conditions = msgspec.field(default_factory=Conditions)

    @property
    def is_leaving(self) -> bool:
        """Whether it is being deleted, and does not serve any more. One that is not ready counts:
        no node is, before it has found the others."""
        return bool(self.conditions.terminating) and self.conditions.serving is False


class Port(msgspec.Struct):
    """A port that all endpoints of a slice have."""

    name: str | None = None
    port: int | None = None


class EndpointSlice(msgspec.Struct):
    """Some of a service's endpoints."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    endpoints: list[Endpoint] | None = None
    ports: list[Port] | None = None

    def node_addresses(self, *, port_name: str, port: int) -> list[Address]:
        """Return where its pods listen: at the port of that name, or at `port` if there is none."""
        named = [one.port for one in self.ports or () if one.name == port_name and one.port]
        number = named[0] if named else port
        return [
            Address(host, number)
            for one in self.endpoints or ()
            if not one.is_leaving
            # They are for the same pod; consumers are to take the first.
            for host in one.addresses[:1]
        ]


class EndpointSliceList(msgspec.Struct):
    """All of a service's slices at one moment."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    items: list[EndpointSlice] | None = None


class Status(msgspec.Struct):
    """Why a request was refused, or a watch ended."""

    message: str = ""
    reason: str = ""
    code: int = 0


class WatchEvent(msgspec.Struct):
    """One line of a watch: what has happened, and to what."""

    type: str
    object: msgspec.Raw
