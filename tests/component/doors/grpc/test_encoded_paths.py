"""Paths of gRPC are compared byte by byte: no other spelling of a method's path is one."""

from __future__ import annotations

from tests.component.doors.grpc.opened import opened
from tests.on_a_loop import run

from angarium.wire.http2.request_heads import RequestHead

UNIMPLEMENTED = b"12"


def twins(path: str) -> list[str]:
    """Return what a proxy, or a careless check, may take for the same path."""
    service, method = path[1:].split("/")
    first = f"%{ord(method[0]):02x}"
    return [
        f"/{service}/{first}{method[1:]}",
        f"/{service}/{first.replace('%', '%25')}{method[1:]}",
        f"/{service}%2F{method}",
        f"/{service.upper()}/{method}",
        f"/{service}/{method.lower()}",
        f"/{path}",
        f"/.{path}",
        f"{path}/",
        f"{path}?a=b",
        f"{path};a=b",
        f"{path}%00",
        f"http://localhost{path}",
        path[1:],
    ]


def test_encoded_paths_lead_nowhere() -> None:
    async def story() -> None:
        async with opened() as it:
            server = it.door._server
            paths = [one.decode() for one in server._methods]
            assert len(paths) > 20
            fields = ((b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"localhost"))
            kind = (b"content-type", b"application/grpc")
            for path in paths:
                assert server.route(RequestHead((*fields, (b":path", path.encode()), kind))).method
                for twin in twins(path):
                    head = RequestHead((*fields, (b":path", twin.encode()), kind))
                    route = server.route(head)
                    assert route.method is None, twin
                    assert UNIMPLEMENTED in route.answer

    run(story())
