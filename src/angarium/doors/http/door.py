"""The door itself: opening it, closing it, and whose face serves a request."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec

import angarium
from angarium.closing import Closings
from angarium.doors.callers import Callers, Faces
from angarium.doors.http.faces import Behind, HttpFace, nobodys
from angarium.doors.http.observing import Strangers
from angarium.doors.http.problems import READABLE_HEADERS, ProblemOut, problem
from angarium.errors import LimitExceeded
from angarium.wire.http import HttpLimits, HttpServer
from angarium.wire.http.admission import Admission
from angarium.wire.http.openapi import document
from angarium.wire.http.request_meters import RequestMeters
from angarium.wire.http.request_reader import RequestRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.api import Broker, GroupBroker
    from angarium.api.administration import AdministrationBroker
    from angarium.api.dead_letters import LettersOfTopic
    from angarium.doors.http.observing import Facts
    from angarium.doors.http.publish_routes import SequencedBroker
    from angarium.doors.intake import Intake
    from angarium.doors.served_by import ServedBy
    from angarium.wire.http.connection import Connection
    from angarium.wire.http.messages import Answer, Request, Response
    from angarium.wire.listening import Context

OPEN: Final = frozenset(
    {("",), ("healthz",), ("readyz",), ("v1", "openapi.json"), ("graphql", "schema")}
)
"""Paths that need no proof, as the router reads them: none of them shows any data."""

SOCKETS: Final = frozenset({("v1", "socket"), ("graphql",)})
"""Paths where a WebSocket may begin without a proof: its first message brings it."""


class HttpDoor:
    """Serves a broker over HTTP on one address."""

    def __init__(
        self,
        broker: Broker | Callers[Behind],
        *,
        host: str,
        port: int,
        groups: GroupBroker | None = None,
        sequenced: SequencedBroker | None = None,
        letters: Callable[[str], LettersOfTopic] | None = None,
        access: AdministrationBroker | None = None,
        facts: Facts | None = None,
        limits: HttpLimits | None = None,
        admission: Admission | None = None,
        hsts_s: int = 0,
        leader_hint: Callable[[str, int], str | None] | None = None,
        tls: Context | None = None,
        served_by: Callable[[], ServedBy] = lambda: (),
    ) -> None:
        """Prepare a door to `broker`, or to what lies behind it for each of the callers.

        What is behind `groups`, `sequenced` (numbers of a client's own), `letters` (the dead
        letters in a topic) and `access` (users, grants, quotas, and what operators do) is not
        served where it is not given. `facts` is what the node knows of itself. `admission` says
        which hosts are ours, and which web pages may use the door. `leader_hint` returns the HTTP
        address of the node that leads a partition, None if that is this node or nobody knows.
        `port` 0 takes a free one. `served_by` is what each answer says of the node. With TLS and
        `hsts_s` above 0 each answer tells browsers to use TLS alone for so many seconds.
        """
        if not isinstance(broker, Callers):
            broker = Callers.everybody(Behind(broker, groups, sequenced, letters, access=access))
        self._host = host
        self._port = port
        self._tls = tls
        self._admission = admission or Admission()
        hsts: ServedBy = ()
        if tls is not None and hsts_s > 0:
            hsts = (("Strict-Transport-Security", f"max-age={hsts_s}"),)
        self.facts = facts or Strangers()
        self.limits = limits or HttpLimits()
        self.leader_hint = leader_hint
        self.closings = Closings()
        self.requests = RequestMeters()
        log_in = None if broker.anonymous is not None else self._log_in
        self._faces = Faces(
            broker, lambda behind: HttpFace(self, behind, log_in=log_in), door="http"
        )
        everybodys = self._faces.everybodys
        self._everybodys = everybodys
        nobody = HttpFace(self, nobodys(), log_in=self._log_in, is_nobodys=True)
        self._guests = everybodys or nobody
        self.server = HttpServer(
            self._handle,
            problem,
            self.limits,
            served_by=lambda: (*served_by(), *hsts),
            on_answered=self.requests.answered,
            closings=self.closings,
            is_known=None if everybodys is not None else self._is_known,
            prove=self._prove,
        )

    @cached_property
    def document(self) -> bytes:
        """The OpenAPI document; made when it is first asked for, since most nodes never are."""
        info = {
            "title": "Angarium",
            "version": angarium.__version__,
            "description": "A replicated message broker. Every error is an RFC 9457 problem.",
        }
        return msgspec.json.encode(
            document(self._guests.router.routes, info=info, problem=ProblemOut)
        )

    @property
    def intake(self) -> Intake:
        """Where records go while everybody is the same."""
        return self._guests.intake

    async def start(self) -> int:
        """Open the door; return the port. `OSError` if the address cannot be had."""
        return await self.server.start(host=self._host, port=self._port, tls=self._tls)

    async def stop(self, grace_s: float = 2.0) -> None:
        """Close the door: streams end at once, other requests have `grace_s` to finish."""
        await self.server.stop(grace_s)

    # --- who asks -------------------------------------------------------------------------------

    def _handle(self, request: Request) -> Answer:
        flood = request.connection.flood
        try:
            told = self._admission.admit(request, readable=READABLE_HEADERS)
        except RequestRefused:
            flood.note()
            raise
        if told is not None:
            flood.note()
            return told
        face = self._everybodys
        if face is None:
            header = request.text_header(b"authorization")
            shown = request.connection.peer_certificate
            face = self._faces.known(header, request, certificate=shown)
            if face is None:
                if _needs_no_proof(request):
                    flood.note()
                    face = self._guests
                else:
                    return self._after_asking(request)
            else:
                flood.is_proven = True
                if flood.control:
                    flood.work += 1
            toll = face.counted.toll
            if toll is not None:
                wait_s = toll.begin_request()
                if wait_s > 0:
                    return self._after(wait_s, face, request)
        return face.router.dispatch(request)

    async def _after_asking(self, request: Request) -> Response | None:
        """Find out who asks, which takes work or fails, and have the request served then."""
        header = request.text_header(b"authorization")
        shown = request.connection.peer_certificate
        flood = request.connection.flood
        try:
            face = await self._faces.found(header, source=request.source, certificate=shown)
        except LimitExceeded:
            # Too many logins failed: this one is counted as those were, which were answered 401.
            flood.is_proven = False
            flood.note()
            raise
        flood.is_proven = True
        wait_s = 0.0 if face.counted.toll is None else face.counted.toll.begin_request()
        return await self._after(wait_s, face, request)

    async def _after(self, wait_s: float, face: HttpFace, request: Request) -> Response | None:
        """Have a request served that has to wait; it is a part of its client's quota."""
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        answer = face.router.dispatch(request)
        return await answer if asyncio.iscoroutine(answer) else answer

    def _is_known(self, header: str | None, connection: Connection) -> bool:
        if self._faces.callers.known(header, connection.peer_certificate) is not None:
            return True
        if header is None:
            raise self._faces.missing(connection.host)
        return False

    async def _prove(self, header: str | None, connection: Connection) -> None:
        shown = connection.peer_certificate
        await self._faces.found(header, source=connection.host, certificate=shown)

    async def _log_in(self, header: str | None, *, source: str) -> HttpFace:
        return await self._faces.found(header, source=source)


def _needs_no_proof(request: Request) -> bool:
    if request.method not in {b"GET", b"HEAD"}:
        return False
    path = tuple(request.segments())
    if path in OPEN:
        return True
    is_socket = path in SOCKETS and request.header(b"upgrade") is not None
    return is_socket and request.header(b"authorization") is None
