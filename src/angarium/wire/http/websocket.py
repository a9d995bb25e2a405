"""A WebSocket: messages both ways, no faster than either side reads.

Frames are wsproto's business, but for those that nearly all are (`socket_frames`). A client that
sends more than is taken is not read from, and neither is one that does not read: that one is cut
after a time. One that vanished is noticed by a ping that stays unanswered.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from collections import deque
from typing import TYPE_CHECKING, Final

from wsproto.connection import Connection as Frames
from wsproto.connection import ConnectionState, ConnectionType
from wsproto.events import (
    BytesMessage,
    CloseConnection,
    Ping,
    Pong,
    TextMessage,
)
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from angarium.errors import QuotaExceeded
from angarium.wire.flooding import TooManyFrames
from angarium.wire.flooding.bounds import CALM_UNPROVEN_MAX
from angarium.wire.flooding.meter import TOO_MANY
from angarium.wire.http.request_reader import RequestRefused
from angarium.wire.http.socket_frames import FrameCutter, MessageTooBig, text_frame
from angarium.wire.http.stream import StreamCut, until_writable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.wire.handlers import Tolled
    from angarium.wire.http.messages import Request

MESSAGES_WAITING_MAX: Final = 256
"""Messages from a client that wait to be taken. At the bound the connection is not read from."""

GUEST_MESSAGE_BYTES_MAX: Final = 32 << 10
"""The first message of a client that has still to say who it is."""

READ_BYTES_LEAST: Final = 64
"""What is read at once of a message after login. A smaller read that makes no frame whole is
counted."""

OVER_QUOTA_SECONDS: Final = 1.0
"""How long a client that is over its quota is not read, if it is not known how long that should
be."""

NORMAL: Final = 1000
UNSUPPORTED: Final = 1003
TOO_BIG: Final = 1009
POLICY: Final = 1008

_MAGIC: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""From RFC 6455, section 1.3."""
_KEY_BYTES: Final = 16


class WebSocket:
    """One WebSocket, on a connection that was given over to it."""

    def __init__(
        self, request: Request, *, subprotocols: Sequence[str] = (), is_guest: bool = False
    ) -> None:
        """Accept; raises `RequestRefused` if the request is none for a WebSocket.

        Of `subprotocols`, in our order of preference, the first that the client offers is chosen.
        A guest has still to say who it is, and may be sent away until `admitted` is called.
        """
        self._connection = request.connection
        self._limits = request.connection.limits
        bytes_max = self._limits.message_bytes_max
        self._cutter = FrameCutter(
            bytes_max=min(bytes_max, GUEST_MESSAGE_BYTES_MAX) if is_guest else bytes_max
        )
        self._frames = Frames(ConnectionType.SERVER)
        self._parts: list[str | bytes] = []
        self._size = 0
        self._kept_bytes = 0
        """Bytes that came and were not looked at."""
        self._waiting: deque[str] = deque()
        self._arrived = asyncio.Event()
        self._is_over = False
        self._is_guest = is_guest
        self._has_said = False
        """A guest's first message has come, by which it says who it is."""
        self.is_full = False
        """Too many messages wait to be taken: nothing more is read."""
        self.tolled: Tolled | None = None
        """Whose quota counts the frames; None as long as that is not known."""
        self._silent_rounds = 0
        offered = (request.text_header(b"sec-websocket-protocol") or "").split(",")
        names = {one.strip() for one in offered}
        self.subprotocol = next((one for one in subprotocols if one in names), None)
        self._connection.begin_websocket(
            request, self, _accepted(request, self.subprotocol), is_guest=is_guest
        )
        self._ticking = asyncio.get_running_loop().call_later(
            self._limits.heartbeat_seconds, self._beat
        )

    # --- what handlers call ---------------------------------------------------------------------

    def admitted(self) -> None:
        """Let a guest stay: it has said who it is. Raises `LimitExceeded`, or `StreamCut`."""
        if self._is_over or not self._connection.is_open:
            raise StreamCut
        self._connection.admit_guest()
        self._is_guest = False

    async def receive(self) -> str | None:
        """Return the next message; None once the WebSocket is closed."""
        while not self._waiting:
            if self._is_over:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        message = self._waiting.popleft()
        if self.is_full and len(self._waiting) < MESSAGES_WAITING_MAX // 2:
            self.is_full = False
            self._connection.wait_for_turn()
        return message

    async def send(self, message: str | bytes) -> None:
        """Send a text, and wait while too much is unread; raises `StreamCut`.

        Bytes have to be UTF-8: they are sent as a text, too.
        """
        if self._is_over or not self._connection.is_open:
            raise StreamCut
        data = message.encode() if isinstance(message, str) else message
        self._connection.write_now(text_frame(data))
        if not self._connection.is_writable.is_set():
            await until_writable(self._connection, self._limits.stalled_seconds_max)

    def send_nowait(self, message: bytes) -> bool:
        """Send a text, if nothing waits already; else, or if nobody is there, return False."""
        return not self._is_over and self._connection.write_if_room(text_frame(message))

    def close(self, code: int = NORMAL, reason: str = "") -> None:
        """Say goodbye, if nobody has, and end."""
        if not self._is_over:
            self._over()
            if self._frames.state is ConnectionState.OPEN:
                # A reason has 123 bytes at the most.
                cut = reason.encode()[:123].decode(errors="ignore")
                self._tell(CloseConnection(code=code, reason=cut))
            self._connection.close()

    # --- what the connection calls --------------------------------------------------------------

    def keep(self, data: bytes) -> None:
        """Take bytes; `go_on` is called when frames in them may be handled."""
        if not self._is_over:
            self._silent_rounds = 0
            self._kept_bytes += len(data)
            self._cutter.keep(data)

    def go_on(self) -> None:
        """Handle frames that have come, as many as may be in one turn of the loop."""
        if self._is_over or self.is_full:
            return
        connection = self._connection
        per_turn = self._limits.frames_per_turn
        if self._is_guest:  # behind its first message others may be longer
            per_turn = CALM_UNPROVEN_MAX if self._has_said else 1
        frames_max = min(per_turn, MESSAGES_WAITING_MAX - len(self._waiting))
        try:
            found = self._cutter.cut(frames_max=frames_max)
            counted = 0
            for one in found:
                if isinstance(one, str):
                    self._arrive(one)
                    counted += self._is_guest
                else:
                    counted += 1
                    self._frames.receive_data(one)
                    self._hear_events()
            self._count(counted, len(found) - counted)
            if not found:
                self._count_dribble()
            self._kept_bytes = 0
        except MessageTooBig:
            self._close_too_big()
        except TooManyFrames:
            self.close(POLICY, TOO_MANY)
        except (RemoteProtocolError, UnicodeDecodeError) as error:
            self.close(1002, str(error))
        else:
            if len(found) == frames_max and not self.is_full:
                connection.wait_for_turn()

    def note_control(self) -> None:
        """Count a message that brought nothing further, as a heartbeat or one that is answered with
        an error. Of a guest every message is counted anyhow."""
        if not self._is_guest:
            flood = self._connection.flood
            flood.work -= 1
            flood.note()

    def _count(self, control: int, work: int) -> None:
        """Count frames: pings, pongs and parts of messages bring nothing further, nor does what a
        guest says. A quota counts them as requests; texts are counted where they are read."""
        flood = self._connection.flood
        flood.work += work
        if flood.control:
            flood.count(0)
        if not control:
            return
        flood.count(control)
        toll = None if self.tolled is None else self.tolled.toll
        if toll is not None:
            rest_s = 0.0
            try:
                for _ in range(control):
                    rest_s = toll.take_request()
            except QuotaExceeded as error:
                rest_s = getattr(error, "retry_after", OVER_QUOTA_SECONDS)
            self._connection.rest(rest_s)

    def _count_dribble(self) -> None:
        """Count a read that made no frame whole, if it is a guest's or next to nothing."""
        if self._kept_bytes and (self._is_guest or self._kept_bytes < READ_BYTES_LEAST):
            self._connection.flood.count()

    def _hear_events(self) -> None:
        for event in self._frames.events():
            match event:
                case TextMessage() | BytesMessage():
                    self._take(event)
                case Ping():
                    self._tell(event.response())
                case CloseConnection():
                    self._tell(event.response())
                    self._over()
                    self._connection.close()

    def lost(self) -> None:
        """Note that there is nobody any more."""
        self._over()

    def _take(self, event: TextMessage | BytesMessage) -> None:
        if isinstance(event, BytesMessage):
            self.close(UNSUPPORTED, "messages are JSON, as text")
            return
        if event.data:
            self._parts.append(event.data)
        self._size += len(event.data)
        if self._size > self._cutter.bytes_max:
            self._close_too_big()
        elif event.message_finished:
            text = "".join(str(part) for part in self._parts)
            self._parts = []
            self._size = 0
            self._arrive(text)

    def _arrive(self, text: str) -> None:
        if self._is_over:
            return  # what came behind a goodbye
        if self._is_guest and not self._has_said:
            self._has_said = True
            self._cutter.bytes_max = self._limits.message_bytes_max
        self._waiting.append(text)
        self._arrived.set()
        if len(self._waiting) >= MESSAGES_WAITING_MAX:
            self.is_full = True

    def _close_too_big(self) -> None:
        self.close(TOO_BIG, f"a message has up to {self._cutter.bytes_max} bytes")

    def _tell(self, event: CloseConnection | Ping | Pong) -> None:
        try:
            self._connection.write_now(self._frames.send(event))
        except LocalProtocolError:
            self._over()  # it has been closed from the other side in the meantime

    def _beat(self) -> None:
        if self._is_over:
            return
        if not self._connection.is_stuck:  # else it is not read, and the server cuts it
            self._silent_rounds += 1
            if self._silent_rounds > 2:
                self._over()
                self._connection.abort()
                return
            self._tell(Ping())
        self._ticking = asyncio.get_running_loop().call_later(
            self._limits.heartbeat_seconds, self._beat
        )

    def _over(self) -> None:
        self._is_over = True
        self._arrived.set()
        if hasattr(self, "_ticking"):
            self._ticking.cancel()


def _accepted(request: Request, subprotocol: str | None) -> bytes:
    """Return the answer that turns a request into a WebSocket; RFC 6455, section 4.2."""
    upgrade = (request.text_header(b"upgrade") or "").lower()
    if request.method != b"GET" or upgrade != "websocket":
        raise RequestRefused("this address is for WebSockets", status=426)
    if request.header(b"sec-websocket-version") != b"13":
        raise RequestRefused("the version of WebSocket spoken here is 13", status=426)
    key = request.header(b"sec-websocket-key") or b""
    try:
        is_right = len(base64.b64decode(key, validate=True)) == _KEY_BYTES
    except binascii.Error:
        is_right = False
    if not is_right:
        raise RequestRefused("Sec-WebSocket-Key is 16 bytes in base64", status=400)
    digest = base64.b64encode(hashlib.sha1(key + _MAGIC).digest())  # noqa: S324  (RFC 6455)
    lines = [
        b"HTTP/1.1 101 Switching Protocols",
        b"Upgrade: websocket",
        b"Connection: Upgrade",
        b"Sec-WebSocket-Accept: " + digest,
    ]
    if subprotocol is not None:
        lines.append(b"Sec-WebSocket-Protocol: " + subprotocol.encode())
    return b"\r\n".join([*lines, b"", b""])
