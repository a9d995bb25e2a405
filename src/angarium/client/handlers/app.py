"""An app: handlers for the records of consumer groups, and the life around them.

    app = App("127.0.0.1:7400")

    @app.subscriber("orders", group="workers", concurrency=16)
    async def handle(order: Order) -> None:
        ...

    app.run()          # or: angarium run module:app

A handler that returns has its record acknowledged; one that raises has it given back, to be tried
again as the group says, and in the end to become a dead letter. SIGTERM and Ctrl-C drain: what is
being worked on is finished and acknowledged, everything else goes back untried.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from angarium.client.client import Client
from angarium.client.groups.group import kind_of
from angarium.client.handlers.handler import Handler
from angarium.client.handlers.running import Running
from angarium.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.api import GroupConfig
    from angarium.client.groups.group import KindLike
    from angarium.client.login import SecretText, TokenLike
    from angarium.client.reading.starts import StartLike
    from angarium.client.settings import ClientSettings

    Hook = Callable[[], Any]

DRAIN_S: Final = 30.0
"""How long handlers may take to finish once the app is to stop. Then they are cancelled, and their
records are given back when their leases end."""

CONCURRENCY_MAX: Final = 10_000
"""Records one handler may work on at a time. More are refused when it is registered."""

_STOPPING: Final = (signal.SIGTERM, signal.SIGINT)

_log = logging.getLogger(__name__)
_F = TypeVar("_F", bound="Callable[..., Any]")
_H = TypeVar("_H", bound="Hook")


class App:
    """Handlers, and a client for them. It runs once."""

    def __init__(
        self,
        *servers: str,
        settings: ClientSettings | None = None,
        user: str | None = None,
        password: SecretText | None = None,
        token: TokenLike | None = None,
        producer: str | None = None,
        drain_s: float = DRAIN_S,
        create_topics: bool = False,
    ) -> None:
        """Begin without handlers.

        `create_topics`: topics of subscribers that are not there are made, with one partition.
        Otherwise a handler waits for its topics, and says so in the log.
        """
        self.handlers: list[Handler] = []
        self.drain_s = drain_s
        self._create_topics = create_topics
        self._client = Client(
            *servers,
            settings=settings,
            user=user,
            password=password,
            token=token,
            producer=producer,
        )
        self._starting: list[Hook] = []
        self._stopping: list[Hook] = []
        self._runnings: list[Running] = []
        self._stop: asyncio.Event | None = None
        self._is_asked_to_stop = False

    @property
    def client(self) -> Client:
        """The client that the app uses, for handlers and hooks."""
        return self._client

    # --- what is registered ---------------------------------------------------------------------

    def subscriber(
        self,
        *topics: str | Sequence[str],
        group: str,
        kind: KindLike | None = None,
        concurrency: int = 1,
        credit: int = 1_000,
        start: StartLike = "earliest",
        config: GroupConfig | None = None,
        publish_to: str | None = None,
    ) -> Callable[[_F], _F]:
        """Have a function called with the records of some topics, as a member of a group.

        It may be a coroutine function or a plain one, which then runs in a thread. Up to
        `concurrency` records are worked on at a time, in the order that the group's kind promises.
        What it returns is published to `publish_to` under the record's key, unless it is None.
        `angarium.client.handlers.binding` says which arguments it can have. The rest is as in
        `Client.group` and `Group.consume`.
        """
        if not 1 <= concurrency <= CONCURRENCY_MAX:
            raise InvalidArgument(f"concurrency must be between 1 and {CONCURRENCY_MAX}")
        names = tuple(
            name for topic in topics for name in ([topic] if isinstance(topic, str) else topic)
        )
        if not names:
            raise InvalidArgument("a subscriber needs at least one topic")

        for known in self.handlers:
            if known.group != group or known.kind is None or kind is None:
                continue
            if kind_of(known.kind) is not kind_of(kind):
                raise InvalidArgument(
                    f"{known.name} takes part in {group!r} as {kind_of(known.kind).name.lower()}; a"
                    f" group has one kind, so this cannot be {kind_of(kind).name.lower()}"
                )

        def register(function: _F) -> _F:
            self.handlers.append(
                Handler(
                    function=function,
                    topics=names,
                    group=group,
                    kind=kind,
                    start=start,
                    config=config,
                    concurrency=concurrency,
                    credit=credit,
                    publish_to=publish_to,
                )
            )
            return function

        return register

    def on_start(self, hook: _H) -> _H:
        """Have a function called when the cluster is reached, before the first record comes."""
        self._starting.append(hook)
        return hook

    def on_stop(self, hook: _H) -> _H:
        """Have a function called after the last record, while the client is still there."""
        self._stopping.append(hook)
        return hook

    # --- its life -------------------------------------------------------------------------------

    def run(self) -> None:
        """Run until SIGTERM or Ctrl-C, and drain; raises what broke it."""
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self.serve(signals=True))

    async def serve(self, *, signals: bool = False) -> None:
        """Run on the present event loop until `stop` is called or, with `signals`, one comes."""
        if not self.handlers:
            raise InvalidArgument("an app without a subscriber has nothing to do")
        self._stop = asyncio.Event()
        if self._is_asked_to_stop:
            self._stop.set()
        loop = asyncio.get_running_loop()
        for one in _STOPPING if signals else ():
            loop.add_signal_handler(one, self.stop)
        try:
            async with self._client:
                await self.call_hooks(starting=True)
                try:
                    await self._work(self._stop)
                finally:
                    await self.call_hooks(starting=False)
        finally:
            for one in _STOPPING if signals else ():
                loop.remove_signal_handler(one)

    def stop(self) -> None:
        """Drain and end; from the app's own event loop. The second time, without waiting."""
        is_again, self._is_asked_to_stop = self._is_asked_to_stop, True
        if is_again:
            self.drain_s = 0.0
        if self._stop is not None:
            self._stop.set()
        self._drain()

    def _drain(self) -> None:
        for running in self._runnings:
            running.drain()

    async def call_hooks(self, *, starting: bool) -> None:
        """Call the functions registered for the start, or for the end."""
        for hook in self._starting if starting else self._stopping:
            waiting = hook()
            if inspect.isawaitable(waiting):
                await waiting

    async def _work(self, stop: asyncio.Event) -> None:
        runnings = self._runnings = [Running(one, self._client) for one in self.handlers]
        tasks = {
            asyncio.create_task(running.run(create_topics=self._create_topics))
            for running in runnings
        }
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            self._drain()
            await self._finish(tasks)
            for running in runnings:
                # What could not be acknowledged any more comes again; it need not stop us.
                with suppress(Exception):
                    await running.consumer.flush()
        finally:
            stopping.cancel()
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            for running in runnings:
                await running.consumer.close()
        for result in results:
            if isinstance(result, BaseExceptionGroup):
                raise result.exceptions[0]
            if isinstance(result, Exception):
                raise result

    async def _finish(self, tasks: set[asyncio.Task[None]]) -> None:
        """Wait until all handlers are done, up to the bound, which a second signal shortens."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while (left_s := began + self.drain_s - loop.time()) > 0:
            # In slices: `stop` may be called once more meanwhile.
            _, waiting = await asyncio.wait(tasks, timeout=min(left_s, 0.2))
            if not waiting:
                return
        _log.warning("handlers did not finish within %g s and are cancelled", self.drain_s)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 (not there on every platform)
    except ImportError:
        return None
    return uvloop.new_event_loop
