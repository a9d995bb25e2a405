"""Frames over one transport, in both directions, whatever they mean.

Guarantees:

- Frames leave in the order in which they were put, those of one turn of the event loop together.
- A peer whose bytes are no frames is told so and disconnected; frames before the bad one count.
- What waits to be written is bounded. The accepting side stops reading at the bound, so that a
  peer that asks and never reads cannot fill its memory; the dialling side always reads, so the two
  never wait for each other. For the same reason only the accepting side rests (`rest`).
- A peer that is silent, or takes none of its bytes, is given up.
- The accepting side handles a bounded number of frames per turn of the event loop, counts those
  that bring no request further, and handles floods of them in the share of time that all floods
  have (`wire.flooding`).
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from abc import abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Final, cast

from angarium.errors import AngariumError
from angarium.wire.decoder import SCRATCH_BYTES, FrameDecoder
from angarium.wire.errors import ConnectionLost, WireError
from angarium.wire.flooding import FloodMeter, gate_of, take_turn
from angarium.wire.flooding.bounds import UNPROVEN_READ_BYTES
from angarium.wire.frames import Frame, FrameKind, frame_head
from angarium.wire.keepalive import Keepalive
from angarium.wire.outgoing import Outgoing
from angarium.wire.peer_certificates import certificate_shown

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence

    from angarium.ids import Buffer
    from angarium.security.tls import Certificate
    from angarium.wire.frames import Header
    from angarium.wire.wire_limits import WireLimits

_log = logging.getLogger(__name__)


class _Scratch(threading.local):
    """Where bytes land first, one per thread and so per event loop; see the decoder."""

    def __init__(self) -> None:
        self.buffer = bytearray(SCRATCH_BYTES)


_scratch: Final = _Scratch()

NOTHING: Final[frozenset[int]] = frozenset()


_REQUEST: Final = int(FrameKind.REQUEST)
_STREAM_DATA: Final = int(FrameKind.STREAM_DATA)

SMALL_FRAME_BYTES: Final = 32
"""A frame of a stream below this size, with its 24 bytes of prefix, is counted as empty."""


def is_control(frame: Frame, counted: frozenset[int]) -> bool:
    """Return whether a frame is counted: its kind is in `counted`, or it is nearly empty."""
    return frame.kind in counted or (frame.kind == _STREAM_DATA and frame.size < SMALL_FRAME_BYTES)


class Channel(asyncio.BufferedProtocol):
    """One side of a socket. `Connection` gives the frames their meaning."""

    def __init__(self, *, limits: WireLimits, is_dialled: bool) -> None:
        self.loop = asyncio.get_running_loop()
        self.is_dialled = is_dialled
        self.error: AngariumError | None = None
        """Why it ended, or is about to; None while it works and after an orderly goodbye."""
        self.on_entered: Callable[[], object] | None = None
        """Called before what came together is handled: to say whose it is (`security.origin`)."""
        self.peer_certificate: Certificate | None = None
        """What the other side has shown, verified; None without one, or without TLS."""
        self._limits = limits
        self._transport: asyncio.Transport | None = None
        self._address = "nowhere"
        # Until the peer has said what it takes, it takes what a handshake needs.
        self._peer_frame_bytes_max = limits.handshake_bytes_max
        self._peer_header_bytes_max = limits.handshake_bytes_max
        self._decoder = FrameDecoder(
            frame_bytes_max=limits.handshake_bytes_max,
            header_bytes_max=limits.handshake_bytes_max,
            scratch=_scratch.buffer,
        )
        self._outgoing = Outgoing(
            self.loop,
            bytes_max=limits.outgoing_bytes_max if is_dialled else limits.handshake_bytes_max,
            on_room=self._read_on,
        )
        unproven = None if is_dialled else gate_of(self.loop).unproven
        self._flood = FloodMeter(frames_max=limits.control_frames_max, unproven=unproven)
        self._flood.look(self.loop.time())
        self._counted: frozenset[int] | None = NOTHING if is_dialled else None
        """Kinds of frames that are counted as control frames; None before login: all kinds."""
        self._read_bytes = SCRATCH_BYTES if is_dialled else UNPROVEN_READ_BYTES
        self._frames_per_turn = limits.frames_per_turn
        self._awaits_turn = False
        self._keepalive = Keepalive(
            self.loop, self._outgoing, limits=limits, ping=self.ping, give_up=self.give_up
        )
        self._is_heard = False
        # Frames of the last read that were not handled: our answers are not taken, or we rest.
        self._unhandled: deque[Frame] = deque()
        self._is_reading = True
        self._resting: asyncio.TimerHandle | None = None
        self._is_cut = False
        self._deadline: asyncio.TimerHandle | None = None

    # --- what it means to whoever builds on it ----------------------------------------------

    @abstractmethod
    def _begin(self) -> None:
        """Hear that the transport is there."""

    @abstractmethod
    def _take_frame(self, frame: Frame) -> None:
        """Act upon a frame that has come."""

    @abstractmethod
    def _end(self, cause: Exception | None) -> None:
        """Hear, once, that the transport is gone."""

    @abstractmethod
    def fail(self, error: AngariumError) -> None:
        """Tell the peer why, and close without waiting for anything under way."""

    # --- for its users ----------------------------------------------------------------------

    @property
    def source(self) -> str:
        """The other side's host; what a login that fails is counted for."""
        return self.address.rpartition(":")[0]

    @property
    def address(self) -> str:
        """The other side's address, for logs."""
        return self._address

    @property
    def tls_context(self) -> ssl.SSLContext | None:
        """The context that `peer_certificate` was verified under; None without TLS."""
        handshake = self._transport.get_extra_info("ssl_object") if self._transport else None
        return None if handshake is None else cast("ssl.SSLContext", handshake.context)

    @property
    def is_congested(self) -> bool:
        """Tell whether one-way messages would be dropped now, because the peer does not keep up."""
        return self._outgoing.is_full

    def flush(self) -> None:
        """Hand what was put to the transport now, instead of at the end of the loop's turn."""
        self._outgoing.flush()

    def rest(self, seconds: float) -> None:
        """Take nothing more from the other side for so long: it is over what it may have.

        What came with the same read waits as well, in its order; answers go out meanwhile.
        """
        if seconds <= 0 or self.is_dialled or self._is_cut:
            return
        until = self.loop.time() + seconds
        if self._resting is not None:
            if self._resting.when() >= until:
                return
            self._resting.cancel()
        self._resting = self.loop.call_at(until, self._rested)
        self._stop_reading()

    async def room(self) -> None:
        """Wait until the peer has taken enough for more to be sent, or is gone."""
        await self._outgoing.room()

    def put(
        self,
        kind: int,
        operation: int,
        frame_id: int,
        header: Header,
        payload: Sequence[Buffer],
        *,
        flags: int = 0,
    ) -> int:
        """Queue a frame and return its size; for the modules of this room.

        Raises `LimitExceeded` for one larger than the peer takes; nothing has happened then. On
        its way to the end, a channel drops frames silently.
        """
        head, size = frame_head(
            kind,
            operation,
            frame_id,
            header,
            payload,
            flags=flags,
            frame_bytes_max=self._peer_frame_bytes_max,
            header_bytes_max=self._peer_header_bytes_max,
        )
        if not self._is_cut:
            self._outgoing.put(head, payload, size)
        return size

    # --- called by the transport ------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)
        self.peer_certificate = certificate_shown(transport)
        # Kept: with TLS a transport forgets it when the connection ends, which is when logs ask.
        name = transport.get_extra_info("peername")
        self._address = f"{name[0]}:{name[1]}" if name else "nowhere"
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family in {socket.AF_INET, socket.AF_INET6}:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._transport.set_write_buffer_limits(high=self._limits.write_buffer_bytes)
        self._outgoing.attach(self._transport)
        self._begin()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next bytes belong."""
        del sizehint
        return self._decoder.writable(self._read_bytes)

    def buffer_updated(self, nbytes: int) -> None:
        """Handle the frames that these bytes complete."""
        self._keepalive.heard()
        self._is_heard = True
        frames = self._decoder.advance(nbytes)
        if self._flood.control and not self.is_dialled:
            self._flood.look(self.loop.time(), size=nbytes)
            if self._flood.is_flooding:
                self._unhandled.extend(frames)
                self._await_turn()
                return
            if self._flood.is_proven:
                self._read_bytes = SCRATCH_BYTES
        self._handle(frames)

    def eof_received(self) -> None:
        """Let the transport close itself: half a connection is of no use."""

    def pause_writing(self) -> None:
        """Hear that the transport has enough."""
        self._outgoing.pause()

    def resume_writing(self) -> None:
        """Hear that the transport has room again."""
        self._outgoing.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._is_cut = True
        self._unhandled.clear()
        if self._resting is not None:
            self._resting.cancel()
        self._keepalive.stop()
        self._stop_deadline()
        self._outgoing.detach()
        self._end(exc)

    # --- reading ----------------------------------------------------------------------------

    def _handle(self, frames: Sequence[Frame]) -> None:
        if self.on_entered is not None:
            self.on_entered()
        frames_max = len(frames) if self.is_dialled else self._frames_per_turn
        # What handlers answer at once leaves together, when all frames of this read are handled.
        self._outgoing.hold()
        try:
            handled = self._take_frames(frames, frames_max)
            if self._counted is not NOTHING:
                self._count(frames[:handled])
            if handled < len(frames) and not self._is_cut:
                self._unhandled.extend(frames[handled:])
                if handled == frames_max:
                    self._await_turn()
            elif self._decoder.error is not None:
                self.fail(self._decoder.error)
        except AngariumError as error:
            self.fail(error)
        except Exception:
            _log.exception("a frame from %s met a mistake of ours", self.address)
            self.fail(WireError("the node met an unexpected error; its log has it"))
        finally:
            self._outgoing.release()

    def _take_frames(self, frames: Sequence[Frame], frames_max: int) -> int:
        """Act upon frames until there is a reason to stop; return upon how many."""
        handled = 0
        for frame in frames:
            if self._is_cut or handled == frames_max:
                break
            handled += 1
            self._take_frame(frame)
            if self._resting is not None or (self._outgoing.is_full and self._must_stop_reading()):
                break
        return handled

    def _count(self, frames: Sequence[Frame]) -> None:
        """Count the frames that bring nothing further; raises `TooManyFrames`."""
        flood, counted = self._flood, self._counted
        if counted is None:
            control = len(frames)
        else:
            control = sum([is_control(one, counted) for one in frames if one.kind != _REQUEST])
        if not control:
            if flood.control:
                flood.work += len(frames)
            return
        flood.work += len(frames) - control
        flood.count(control)
        self._charge_control(control)

    def _charge_control(self, frames: int) -> None:
        """Charge so many control frames to the quota of the peer."""

    def _await_turn(self) -> None:
        """Handle what has come, and read on, when this connection's turn comes."""
        self._stop_reading()
        if self._flood.is_flooding:
            self._read_bytes = UNPROVEN_READ_BYTES
        if not self._awaits_turn:
            self._awaits_turn = True
            take_turn(self.loop, self._flood, self._turn_came)

    def _turn_came(self) -> None:
        self._awaits_turn = False
        self._read_on()

    def _must_stop_reading(self) -> bool:
        if self.is_dialled or self._is_cut:
            return False
        self._outgoing.flush()
        if not self._outgoing.is_full:
            return False
        self._stop_reading()
        return True

    def _stop_reading(self) -> None:
        if self._is_reading and self._transport is not None:
            self._transport.pause_reading()
            self._is_reading = False
            self._keepalive.listen(False)

    def _rested(self) -> None:
        self._resting = None
        self._read_on()

    def _read_on(self) -> None:
        """Go on where reading stopped, if nothing is in the way any more."""
        if self._is_reading or self._is_cut or self._resting is not None or self._awaits_turn:
            return
        if self._unhandled or self._decoder.error is not None:
            unhandled = list(self._unhandled)
            self._unhandled.clear()
            self._handle(unhandled)
        is_held = self._resting is not None or self._outgoing.is_full or self._awaits_turn
        if not self._unhandled and not self._is_cut and not is_held:
            assert self._transport is not None
            self._is_reading = True
            self._flood.is_behind = False
            self._keepalive.listen(True)
            self._transport.resume_reading()

    # --- ending -----------------------------------------------------------------------------

    def _close_transport(self) -> None:
        """Hand over the last bytes and close when they are out; nothing comes after them."""
        if self._transport is not None and not self._is_cut:
            self._outgoing.hand_over()
            self._is_cut = True
            self._transport.close()

    def _cut(self) -> None:
        """Close once the last bytes are out, or have had their time."""
        self._close_transport()
        self._set_deadline(self._limits.farewell_timeout_s)

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _set_deadline(self, seconds: float) -> None:
        """Have `_late` called after so many seconds, unless stopped."""
        self._stop_deadline()
        self._deadline = self.loop.call_later(seconds, self._late)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        self._abort()

    # --- keep-alive -------------------------------------------------------------------------

    def take_heard(self) -> bool:
        """Return whether any bytes came since this was called last; for one caller only."""
        is_heard, self._is_heard = self._is_heard, False
        return is_heard

    def ping(self) -> None:
        """Send a PING, unless too much waits already for the peer to read."""
        if not self._outgoing.is_full:
            self.put(FrameKind.PING, 0, 0, b"", ())

    def give_up(self, why: str) -> None:
        """Abort: the peer is not there any more. Requests under way fail with `ConnectionLost`."""
        if self.error is None:
            self.error = ConnectionLost(f"{self.address} {why}")
        self._abort()
