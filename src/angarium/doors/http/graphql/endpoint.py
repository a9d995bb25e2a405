"""GraphQL over HTTP: POST and GET, one operation or a few, and a page to try it out."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from graphql import OperationType

from angarium.doors.callers import UNCOUNTED
from angarium.doors.http.graphql.answers import InvalidDocument, refusal
from angarium.doors.http.graphql.costs import Measure, check
from angarium.doors.http.graphql.execution import Executor, Operation, operation_kind
from angarium.doors.http.graphql.publish_fields import OFFSETS, PublishView
from angarium.doors.http.graphql.resolving import Resolvers
from angarium.doors.http.graphql.schema import SDL
from angarium.doors.http.graphql.sessions import PROTOCOLS, GraphqlSession
from angarium.doors.http.graphql.subscribing import Subscribing
from angarium.doors.http.socket_logins import log_in_of
from angarium.errors import AngariumError, InvalidArgument, QuotaExceeded, TooLarge
from angarium.wire.http import Response
from angarium.wire.http.messages import JSON, NO_STORE, OF_A_PAGE
from angarium.wire.http.request_reader import RequestRefused
from angarium.wire.http.socket_session import accepted
from angarium.wire.http.strict_json import check_names, decoded, not_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from angarium import api
    from angarium.api import GroupBroker
    from angarium.api.administration import AdministrationBroker
    from angarium.closing import Closings
    from angarium.doors.callers import Counted
    from angarium.doors.http.graphql import QueryParameters
    from angarium.doors.http.graphql.costs import GraphqlLimits
    from angarium.doors.http.graphql.execution import Prepared
    from angarium.doors.http.graphql.plans import Plan
    from angarium.doors.intake import Intake, Placed
    from angarium.wire.http.messages import Answer, Headers, Request

RESPONSE_JSON: Final = b"application/graphql-response+json"
_PLAYGROUND: Final = Path(__file__).with_name("playground.html")
_PLACEHOLDER: Final = b"ENDPOINT"


_operation: Final = msgspec.json.Decoder(Operation)
_operations: Final = msgspec.json.Decoder(list[Operation])
_variables: Final = msgspec.json.Decoder(dict[str, Any])
_encode: Final = msgspec.json.Encoder().encode


class GraphqlEndpoint:
    """Serves GraphQL on a path."""

    def __init__(
        self,
        intake: Intake,
        groups: GroupBroker | None,
        closings: Closings,
        *,
        name: str = "graphql",
        subscribing: Subscribing | None = None,
        limits: GraphqlLimits | None = None,
        unnamed_protocol: str | None = None,
        hints: Callable[[str], Headers] | None = None,
        access: AdministrationBroker | None = None,
        log_in: Callable[..., Awaitable[GraphqlEndpoint]] | None = None,
        counted: Counted = UNCOUNTED,
        is_known: bool = False,
    ) -> None:
        """Prepare; `name` is the last part of the path, where the page finds everything.

        `unnamed_protocol` is what clients speak that name none: without it they are sent away.
        `hints` are headers for the answer to a publish, by its topic. Without `access` users and
        grants are not served. With `log_in` a WebSocket has to say in its `connection_init` who
        the client is, or may, if that `is_known` already. `counted` counts sockets, and what is
        asked over them.
        """
        self.executor = Executor(Resolvers(intake, groups, access), limits)
        self._log_in = log_in
        self.counted = counted
        self._is_known = is_known
        self.subscribing = subscribing or Subscribing(intake.broker, groups)
        self._closings = closings
        self._unnamed_protocol = unnamed_protocol
        self._hints = hints
        self._answered: api.Ack | None = None
        self._answered_plan: Plan | None = None
        self._words = b""
        """The answer to the publishes that were acknowledged last."""
        self._page = _PLAYGROUND.read_bytes().replace(_PLACEHOLDER, name.encode())
        self._page_headers: Headers = (
            (b"Content-Security-Policy", page_policy(self._page)),
            *OF_A_PAGE,
        )

    def post(self, request: Request, given: QueryParameters) -> Answer:
        """Execute one operation, or a few."""
        del given  # all is in the body
        if request.named.get(b"content-type") != JSON and request.media_type != JSON:
            raise not_json()
        if request.body.lstrip()[:1] == b"[":
            return self._several(request)
        try:
            asked = decoded(request.body, _operation, is_checked=True)
            if not _has_names_once(request.body, asked):
                check_names(request.body)
            prepared = self._checked(asked, is_get=False)
        except AngariumError as error:
            return _refused(request, error)
        plan = prepared.plan
        if plan is not None and plan.only_field == "publish" and plan.fits(asked.variables):
            return self._publish(request, asked, plan)
        return self._one(request, asked, prepared)

    async def _one(self, request: Request, asked: Operation, prepared: Prepared) -> Response:
        return _answered(
            request,
            await self.executor.executed(asked, prepared),
            NO_STORE if prepared.tells_secret else (),
        )

    def _publish(self, request: Request, asked: Operation, plan: Plan) -> Answer:
        """Publish one record, as most mutations do, without a task for each."""
        arguments: dict[str, Any] = {}

        def done(outcome: Placed | Exception) -> None:
            topic = arguments.get("topic")
            headers = self._hints(topic) if self._hints is not None and topic else ()
            request.answer(Response(200, self._told(plan, outcome), _type(request), headers))

        try:
            arguments = plan.arguments(asked.variables)
            return self.executor.resolvers.publishing.begin(done, **arguments)
        except Exception as error:  # each becomes an answer
            done(error)
            return None

    def _told(self, plan: Plan, outcome: Placed | Exception) -> bytes:
        """Return the answer to a publish, written down once for records that travelled together."""
        if isinstance(outcome, Exception):
            return _encode(plan.answer(outcome))
        if outcome.ack is self._answered and plan is self._answered_plan:
            return self._words
        words = _encode(plan.answer(PublishView.of(outcome)))
        if plan.names.isdisjoint(OFFSETS):
            self._answered, self._answered_plan, self._words = outcome.ack, plan, words
        return words

    async def get(self, request: Request, given: QueryParameters) -> Response | None:
        """Execute a query, become a WebSocket, or show the page."""
        if request.header(b"upgrade") is not None:
            await self._socket(request)
            return None
        if given.query is None:
            return self.playground(request, given)
        try:
            variables = None if given.variables is None else decoded(given.variables, _variables)
            asked = Operation(given.query, variables, given.operationName)
            prepared = self._checked(asked, is_get=True)
        except AngariumError as error:
            return _refused(request, error)
        return _answered(request, await self.executor.executed(asked, prepared))

    def playground(self, _: Request, __: object) -> Response:
        return Response(200, self._page, b"text/html; charset=utf-8", self._page_headers)

    def sdl(self, _: Request, __: object = None) -> Response:
        return Response(200, SDL.strip().encode(), b"text/plain; charset=utf-8")

    async def _socket(self, request: Request) -> None:
        log_in = log_in_of(request, self._log_in)
        is_guest = log_in is not None and not self._is_known
        leave = self.counted.enter()
        try:
            await GraphqlSession(
                accepted(request, subprotocols=PROTOCOLS, is_guest=is_guest),
                self,
                self._closings,
                unnamed_protocol=self._unnamed_protocol,
                log_in=log_in,
                is_known=self._is_known,
                leave=leave,
            ).run()
        finally:
            leave()

    async def _several(self, request: Request) -> Response:
        limits = self.executor.limits
        try:
            asked = decoded(request.body, _operations)
            if not 1 <= len(asked) <= limits.batch_max:
                raise TooLarge("batch_max", f"up to {limits.batch_max} operations")
            together = Measure()
            prepared = []
            for one in asked:
                prepared.append(self._checked(one, is_get=False))
                together = together.beside(prepared[-1].measure)
            check(together, limits)
        except AngariumError as error:
            return _refused(request, error)
        # One after the other: mutations of a batch may build on each other.
        answers: list[object] = []
        for one, ready in zip(asked, prepared, strict=True):
            try:
                if answers and self.counted.toll is not None:
                    # The request itself was the first one. Ten in one cost as much as ten.
                    await self.counted.toll.admit_request()
                answers.append(await self.executor.executed(one, ready))
            except QuotaExceeded as error:
                answers.append(refusal(error))
        is_secret = any(one.tells_secret for one in prepared)
        return _answered(request, answers, NO_STORE if is_secret else ())

    def _checked(self, asked: Operation, *, is_get: bool) -> Prepared:
        prepared = self.executor.prepared(asked.query)
        kind = operation_kind(asked, prepared)
        if kind is OperationType.SUBSCRIPTION:
            raise InvalidArgument("subscriptions go over a WebSocket: graphql-transport-ws")
        if is_get and kind is not OperationType.QUERY:
            # A link must not change anything.
            raise RequestRefused("only queries may be asked with GET", status=405)
        return prepared


def page_policy(page: bytes) -> bytes:
    """Return the policy of a page: its own script and style, requests to its own origin, no frame
    around it, and nothing else."""
    inline = {}
    for name in (b"script", b"style"):
        digests = [
            b"'sha256-%b'" % base64.b64encode(hashlib.sha256(text).digest())
            for text in re.findall(rb"<%b>(.*?)</%b>" % (name, name), page, re.DOTALL)
        ]
        inline[name] = b" ".join(digests)
    return (
        b"default-src 'none'; script-src %b; style-src %b; connect-src 'self'; base-uri 'none';"
        b" form-action 'none'; frame-ancestors 'none'" % (inline[b"script"], inline[b"style"])
    )


def _has_names_once(body: bytes, asked: Operation) -> bool:
    """Tell at a glance that no name comes twice, for most operations: with variables that are
    texts. False: it has to be looked at.

    A name and a text have two quotes each, and nothing else has any but those within texts, behind
    a backslash. So a name that came twice leaves more quotes than what was understood.
    """
    variables = asked.variables or {}
    texts = [one for one in variables.values() if type(one) is str]
    if b"\\\\" in body or len(texts) != len(variables):
        return False
    named = 1 + (asked.variables is not None) + 2 * len(texts) + (asked.operationName is not None)
    values = 1 + (asked.operationName is not None)
    return body.count(b'"') - body.count(b'\\"') == 2 * (named + values)


def _answered(request: Request, answer: object, headers: Headers = ()) -> Response:
    return Response(200, _encode(answer), _type(request), headers)


def _refused(request: Request, error: AngariumError) -> Response:
    kind = _type(request)
    status = getattr(error, "status", 400)
    if kind == JSON and isinstance(error, InvalidDocument):
        status = 200  # what clients of the older media type expect
    return Response(status, _encode(refusal(error)), kind)


def _type(request: Request) -> bytes:
    accepted = request.header(b"accept") or b""
    return RESPONSE_JSON if RESPONSE_JSON in accepted else JSON
