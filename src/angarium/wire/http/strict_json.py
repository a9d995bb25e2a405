"""JSON that means one thing: no NaN, no 1e999, no name twice, no field that nobody knows.

msgspec refuses all of that but a name that is given twice, of which it takes the last. Other
readers take the first, so such a document means two things, and is refused here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from angarium.errors import InvalidArgument
from angarium.wire.http.messages import JSON
from angarium.wire.http.request_reader import RequestRefused

if TYPE_CHECKING:
    from angarium.wire.http.messages import Request

T = TypeVar("T")

FORM: Final = b"application/x-www-form-urlencoded"
"""What browsers' forms and, if it is not told otherwise, curl say."""


def decoded(body: bytes | str, decoder: msgspec.json.Decoder[T], *, is_checked: bool = False) -> T:
    """Return what `body` says; raises `InvalidArgument`.

    `is_checked`: the caller makes sure by itself that no name comes twice.
    """
    try:
        value = decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise InvalidArgument(f"the JSON is not what this takes: {error}") from None
    except (UnicodeDecodeError, RecursionError):
        raise InvalidArgument("the JSON is no UTF-8, or too deep") from None
    if not is_checked and body.count(b":" if isinstance(body, bytes) else ":") > 1:  # type: ignore[arg-type]
        # At most one name has a colon after it otherwise, and one cannot be there twice.
        check_names(body)
    return value


def is_json(request: Request) -> bool:
    """Whether a body is JSON: it says so, or it is what `curl -d '{…}'` sends without being told.

    That calls itself a form; but no form begins with a brace, which forms have to quote.
    """
    if request.named.get(b"content-type") == JSON:
        return True
    kind = request.media_type
    return kind == JSON or (kind == FORM and request.body.lstrip()[:1] == b"{")


def json_body(request: Request, decoder: msgspec.json.Decoder[T]) -> T:
    """Return what a request's body says, if it says that it is JSON."""
    if not is_json(request):
        raise not_json()
    return decoded(request.body, decoder)


def not_json() -> RequestRefused:
    """Return the refusal of a body that is something else."""
    return RequestRefused("the body has to be JSON: Content-Type: application/json", status=415)


def check_names(body: bytes | str) -> None:
    """Raise `InvalidArgument` if an object has the same name twice."""
    if _has_names_once(body):
        return
    try:
        _reader.decode(body.decode() if isinstance(body, bytes) else body)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"the JSON cannot be read: {error}") from None


def _has_names_once(body: bytes | str) -> bool:
    """Tell at a glance that no name comes twice; False: it has to be looked at.

    What msgspec takes from a document and writes again lacks names that came before, and with them
    their quotes. Whatever else may differ has none, but for a quote that was written as a number.
    """
    if isinstance(body, str):
        body = body.encode(errors="replace")
    if b"\\u" in body:
        return False
    try:
        return _plainly(_anything(body)).count(b'"') == body.count(b'"')
    except (ValueError, RecursionError, OverflowError):
        return False


def _checked(pairs: list[tuple[str, object]]) -> None:
    if len(pairs) > 1 and len(dict(pairs)) != len(pairs):
        raise InvalidArgument("an object has the same name twice")


_anything: Final = msgspec.json.Decoder().decode
_plainly: Final = msgspec.json.Encoder().encode
_reader: Final = json.JSONDecoder(object_pairs_hook=_checked)
