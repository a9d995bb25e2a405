"""A record's headers as a reader gets them: by name, and in the order in which they were given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, SupportsIndex, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Iterator

_D = TypeVar("_D")


class RecordHeaders(tuple[tuple[str, bytes | None], ...]):
    """Pairs of names and contents, and a mapping of them; it goes into `publish` as it is.

    A name may come more than once. `headers["trace"]` is the last of that name, as in a dict of
    the pairs; `all("trace")` are all of them, and going through it yields every pair, in order.
    """

    __slots__ = ()

    @overload
    def __getitem__(self, at: str) -> bytes | None: ...
    @overload
    def __getitem__(self, at: SupportsIndex) -> tuple[str, bytes | None]: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[tuple[str, bytes | None], ...]: ...
    def __getitem__(self, at: str | SupportsIndex | slice) -> object:
        if not isinstance(at, str):
            return super().__getitem__(at)
        found = self.all(at)
        if not found:
            raise KeyError(at)
        return found[-1]

    def __contains__(self, thing: object) -> bool:
        if isinstance(thing, str):
            return any(name == thing for name, _ in self)
        return super().__contains__(thing)

    @overload
    def get(self, name: str) -> bytes | None: ...
    @overload
    def get(self, name: str, default: _D) -> bytes | _D | None: ...
    def get(self, name: str, default: object = None) -> object:
        """Return the last header of that name, or `default` if there is none."""
        found = self.all(name)
        return found[-1] if found else default

    def all(self, name: str) -> list[bytes | None]:
        """Return every header of that name, in order."""
        return [content for one, content in self if one == name]

    def keys(self) -> list[str]:
        """Return the names, each once, in order."""
        return list(dict.fromkeys(name for name, _ in self))

    def items(self) -> Iterator[tuple[str, bytes | None]]:
        """Yield every pair: a name that comes twice is here twice."""
        return iter(self)


NO_HEADERS: Final = RecordHeaders()
