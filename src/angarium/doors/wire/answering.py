"""The parts of a row in the table of requests: what is read, what is called, how it is answered."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from angarium.batch import split
from angarium.wire import packed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from angarium.ids import Buffer
    from angarium.wire import Header, Request
    from angarium.wire.handlers import RequestHandler

    Answer: TypeAlias = Callable[[Any], msgspec.Struct]
    """Makes the content of a frame of what a call returned."""
    Layout: TypeAlias = Callable[[Any], tuple[Header, Sequence[Buffer]]]
    """Returns the header and the payload of such a content."""

H = TypeVar("H", bound=msgspec.Struct)


def in_header(content: msgspec.Struct | None) -> tuple[Header, Sequence[Buffer]]:
    """Answer in the header; None is answered with nothing."""
    return (b"" if content is None else content), ()


def in_payload(content: msgspec.Struct) -> tuple[Header, Sequence[Buffer]]:
    """Answer in the payload, because the answer may be larger than a header."""
    return b"", (packed(content),)


def asks(
    header_type: type[msgspec.Struct],
    call: Callable[..., Awaitable[Any]],
    answer: Answer | None = None,
    layout: Layout = in_header,
) -> RequestHandler:
    """Serve a request whose header has the arguments of `call`, under the same names."""
    names = header_type.__struct_fields__
    # The contract and the header are declared apart. Where they differ, no node starts.
    inspect.signature(call).bind(**dict.fromkeys(names))

    def begin(request: Request) -> Awaitable[Any]:
        header = request.read(header_type)
        return call(**{name: getattr(header, name) for name in names})

    return _serving(begin, answer, layout)


def asks_whole(header_type: type[H], call: Callable[[H], Awaitable[Any]]) -> RequestHandler:
    """Serve a request whose header, as it is, is what `call` takes."""
    return _serving(lambda request: call(request.read(header_type)), None, in_header)


def asks_nothing(
    call: Callable[[], Awaitable[Any]], answer: Answer | None = None, layout: Layout = in_header
) -> RequestHandler:
    """Serve a request that has no header; one that comes all the same is not looked at."""
    return _serving(lambda _: call(), answer, layout)


def brings_batches(
    header_type: type[msgspec.Struct],
    contract_type: type[H],
    call: Callable[[H], Awaitable[Any]],
) -> RequestHandler:
    """Serve a request whose header and payload are the fields and the batches of one value."""
    names = header_type.__struct_fields__
    assert {*names, "batches"} == {*contract_type.__struct_fields__}

    def begin(request: Request) -> Awaitable[Any]:
        header = request.read(header_type)
        fields = {name: getattr(header, name) for name in names}
        return call(contract_type(**fields, batches=tuple(split(request.payload))))

    return _serving(begin, None, in_header)


def brings(
    content_type: type[H], call: Callable[[H], Awaitable[Any]], layout: Layout = in_header
) -> RequestHandler:
    """Serve a request whose payload, as `wire.packed` made it, is what `call` takes."""
    return _serving(lambda request: call(request.unpack(content_type)), None, layout)


def _serving(
    begin: Callable[[Request], Awaitable[Any]], answer: Answer | None, layout: Layout
) -> RequestHandler:
    async def serve(request: Request) -> None:
        result = await begin(request)
        request.answer(*layout(result if answer is None else answer(result)))

    return serve
