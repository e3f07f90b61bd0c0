"""A server that answers a blocked read with what no server should answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import hiredis
import pytest

import cwist_jq
from tests.fault.support import blocked_claim, drain, leftovers, took
from tests.proxy import DOWN, UP, Proxy

pytestmark = pytest.mark.engine("redis")

VISIBILITY = 0.3
LONG = 3.0
SHORT = 0.6


class _Liar(Proxy):
    """Puts other bytes in the place of the next answer to a blocked read."""

    def __init__(self, host: str, port: int) -> None:
        self._lie: bytes | None = None
        self._reading: set[int] = set()
        self._whole = hiredis.Reader()
        self.told = threading.Event()
        super().__init__(host, port)

    def lie(self, answer: bytes) -> None:
        """The answer that is told, once."""
        self._lie = answer

    def _judge(self, link: Any, direction: str, data: bytes) -> tuple[bytes, bool]:
        if direction == UP:
            (self._reading.add if b"BLOCK" in data else self._reading.discard)(link.number)
        elif direction == DOWN and self._lie is not None and link.number in self._reading:
            # The server may send its answer in pieces, and none of them must follow the lie.
            self._whole.feed(data)
            data = b""
            if self._whole.gets() is not False:
                data, self._lie = self._lie, None
                self.told.set()
        return super()._judge(link, direction, data)


@pytest.fixture
def liar(server: Any) -> Iterator[_Liar]:
    with _Liar(server.host, server.port) as made:
        yield made


def _text(words: str) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(words), words.encode())


_STREAM = b"*1\r\n*2\r\n" + _text("cwist:jq:a:s")
_ENTRY = _STREAM + b"*1\r\n*2\r\n" + _text("9-9")

#: Nothing came, or what came was deleted meanwhile: no error.
NOTHING = {
    "nil": b"*-1\r\n",
    "nil bulk": b"$-1\r\n",
    "no stream": b"*0\r\n",
    "no entry": _STREAM + b"*0\r\n",
    "nil instead of entries": _STREAM + b"*-1\r\n",
    "an entry without fields": _ENTRY + b"*-1\r\n",
    "an entry without fields, in other words": _ENTRY + b"$-1\r\n",
}
#: Answers of no known shape.
ODD = {
    "a number": b":7\r\n",
    "a text": b"+OK\r\n",
    "an error that nobody knows": b"-WHAT is this\r\n",
    "an array of numbers": b"*2\r\n:1\r\n:2\r\n",
    "a stream alone": b"*1\r\n*1\r\n" + _text("cwist:jq:a:s"),
    "an entry that is a text": _STREAM + b"*1\r\n" + _text("entry"),
    "an id that is a number": _STREAM + b"*1\r\n*2\r\n:3\r\n*0\r\n",
    "an id that is nil": _STREAM + b"*1\r\n*2\r\n$-1\r\n*2\r\n" + _text("payload") + _text("x"),
    "an odd number of fields": _ENTRY + b"*3\r\n" + _text("type") + _text("") + _text("payload"),
    "a value that is an array": _ENTRY + b"*2\r\n" + _text("payload") + b"*1\r\n" + _text("x"),
    "an error in the middle": _STREAM + b"-ERR broken\r\n",
    "an error as an entry": _STREAM + b"*1\r\n-ERR broken\r\n",
    "a type that nobody knows": b"!x\r\n",
    "no protocol at all": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "a length below zero": b"$-7\r\n",
    "a length that is no number": b"*two\r\n",
    "more elements than there are": b"*4294967297\r\n",
    "a text of the largest size": b"*1\r\n$9223372036854775807\r\n",
    "too deep": b"*1\r\n" * 200 + b":1\r\n",
}


def _told(
    liar: _Liar, queue: Any, observer: Any, answer: bytes, deadline: float
) -> tuple[Any, Exception | None]:
    """What a blocked claim makes of an answer that stands in the place of a job."""
    claim = blocked_claim(queue, observer, deadline)
    liar.lie(answer)
    queue.enqueue(b"behind")
    with took(0.0, deadline + 0.5):
        try:
            return claim.result(), None
        except cwist_jq.Error as error:
            return None, error
        finally:
            assert liar.told.is_set()


@pytest.fixture
def queue_behind(liar: _Liar, open_queue: Callable[..., Any], queue_name: str) -> Any:
    """The test's queue, through the proxy."""
    return open_queue(
        liar.url("redis"),
        queue_name,
        operation_timeout=2.0,
        visibility_timeout=VISIBILITY,
        max_retries=100,
    )


@pytest.mark.parametrize("answer", NOTHING.values(), ids=NOTHING)
def test_nothing_in_any_shape_is_waited_over(
    liar: _Liar, queue_behind: Any, observer: Any, answer: bytes
) -> None:
    """S08: the same claim gets the job, which the server gave away once in vain."""
    job, error = _told(liar, queue_behind, observer, answer, LONG)
    assert error is None
    assert (job.payload, job.attempts) == (b"behind", 2)
    job.ack()
    assert leftovers(observer, queue_behind.name) == []


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD)
def test_an_answer_of_an_unknown_shape_harms_nobody(
    liar: _Liar, queue_behind: Any, observer: Any, answer: bytes
) -> None:
    """S08: an error of its own or another try, in time; the handle and the job live."""
    job, error = _told(liar, queue_behind, observer, answer, SHORT)
    assert job is not None or isinstance(
        error, cwist_jq.ProtocolError | cwist_jq.Refused | cwist_jq.ConnectionFailed
    ), error
    if job is not None:
        assert (job.payload, job.attempts) == (b"behind", 2)
        job.ack()
    assert drain(queue_behind, observer) == ([b"behind"] if job is None else [])
    assert leftovers(observer, queue_behind.name) == []
