"""What opens a thing: awaited, or entered with `async with`, which closes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from types import TracebackType

__all__ = ["Opening"]


class _Closable(Protocol):
    async def close(self) -> None: ...


T = TypeVar("T", bound=_Closable)


class Opening(Generic[T]):
    """A connection or a queue that is opened when this is awaited or entered."""

    __slots__ = ("_open", "_opened")

    def __init__(self, open: Callable[[], Coroutine[Any, Any, T]]) -> None:
        """Keeps the function that opens it."""
        self._open = open
        self._opened: T | None = None

    def __await__(self) -> Generator[Any, None, T]:
        """Opens it; closing it is the caller's business."""
        return self._open().__await__()

    async def __aenter__(self) -> T:
        """Opens it."""
        self._opened = await self._open()
        return self._opened

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes it."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.close()
