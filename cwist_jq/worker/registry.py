"""Which handler does a type of job, and what it wants to be called with."""

from __future__ import annotations

import inspect

from cwist_jq.errors import InvalidParam, InvalidType
from cwist_jq.job import Job
from cwist_jq.worker.codec import decoder_of
from cwist_jq.worker.errors import Reject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Union

    from cwist_jq.worker.child import RemoteJob

    AnyJob = Union[Job, RemoteJob]

__all__ = ["Handler", "Registry"]

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Handler:
    """A function that does jobs.

    Attributes:
        function: What was registered.
        types: The types that it does; empty for those that nobody else does.
        is_async: Whether calling it gives a coroutine.
        call: Calls it for a job: decodes the payload and passes what its parameters ask for.
    """

    __slots__ = ("call", "function", "is_async", "types")

    def __init__(self, function: Callable[..., Any], types: tuple[str, ...]) -> None:
        """Looks at its parameters; InvalidParam when it cannot be called with a job."""
        self.function = function
        self.types = types
        self.is_async = _is_async(function)
        self.call: Callable[[AnyJob], Any] = _caller(function)

    @property
    def name(self) -> str:
        """Its name, for people."""
        return getattr(self.function, "__qualname__", None) or repr(self.function)

    def address(self) -> tuple[str, str]:
        """The module and the name under which another process finds it.

        Raises:
            InvalidParam: It is none of a module's own names.
        """
        module = getattr(self.function, "__module__", None)
        name = getattr(self.function, "__qualname__", None)
        if not module or not name or "<" in name:
            raise InvalidParam(
                f"handler {self.name} cannot run in a child process; allowed: functions that a "
                "module has under their own names"
            )
        return module, name


def _is_async(function: Callable[..., Any]) -> bool:
    called = getattr(function, "__call__", None)  # noqa: B004 (its code, not whether it is there)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


def _annotation(function: Callable[..., Any], parameter: inspect.Parameter) -> object:
    """The annotation as an object, also when it was written as a text."""
    if not isinstance(parameter.annotation, str):
        return parameter.annotation
    from typing import get_type_hints

    try:
        return get_type_hints(function).get(parameter.name)
    except Exception:  # noqa: BLE001 (a name that only the type checker knows, whatever it raises)
        names: dict[str, object] = {"bytes": bytes, "Job": Job, "cwist_jq.Job": Job}
        return names.get(parameter.annotation)


def _caller(function: Callable[..., Any]) -> Callable[[AnyJob], Any]:
    """What calls the function for a job: f(data), f(data, job), or f(job: Job)."""
    found = [p for p in inspect.signature(function).parameters.values() if p.kind in _POSITIONAL]
    needed = [p for p in found if p.default is inspect.Parameter.empty]
    if not found or len(needed) > 2:  # noqa: PLR2004 (data and job)
        raise InvalidParam(
            f"handler {getattr(function, '__qualname__', function)!s} takes {len(needed)} "
            "arguments; allowed: the data, or the data and the job"
        )
    wanted = _annotation(function, found[0])
    if wanted is Job:
        return function
    decoder = decoder_of(wanted)
    if len(needed) == 2:  # noqa: PLR2004
        return lambda job: function(_decoded(decoder, job), job)
    return lambda job: function(_decoded(decoder, job))


def _decoded(decoder: Callable[[bytes], Any], job: AnyJob) -> Any:
    """The data of a job. What cannot be read now cannot be read later either."""
    try:
        return decoder(job.payload)
    except MemoryError:
        raise
    except Exception as error:
        raise Reject(f"the payload cannot be read: {error}") from error


class Registry:
    """The handlers of a worker."""

    def __init__(self) -> None:
        """Has none yet."""
        self._by_type: dict[str, Handler] = {}
        self._other: Handler | None = None

    def add(self, function: Callable[..., Any], types: tuple[str, ...]) -> None:
        """Registers a function for types, or for all others when there are none.

        Raises:
            InvalidType: It is no function, or a type is no str.
            InvalidParam: A type has a handler already, or the function cannot be called with a job.
        """
        if not callable(function):
            raise InvalidType(f"handler is a {function.__class__.__name__}; allowed: a function")
        handler = Handler(function, types)
        for kind in types:
            if not isinstance(kind, str):
                raise InvalidType(f"type is a {type(kind).__name__}; allowed: a str")
            if not kind:
                raise InvalidParam("type is ''; allowed: a text, or no type for all other jobs")
            if kind in self._by_type:
                raise InvalidParam(f"type {kind!r} is done by {self._by_type[kind].name} already")
        if not types and self._other is not None:
            raise InvalidParam(f"all other types are done by {self._other.name} already")
        self._by_type.update(dict.fromkeys(types, handler))
        if not types:
            self._other = handler

    def find(self, type: str | None) -> Handler | None:
        """The handler for a type, if there is one."""
        return self._by_type.get(type, self._other) if type is not None else self._other

    def all(self) -> list[Handler]:
        """Each handler once."""
        found = list(dict.fromkeys(self._by_type.values()))
        return found if self._other is None else [*found, self._other]
