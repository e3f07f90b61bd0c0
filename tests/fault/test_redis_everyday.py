"""Keys, delays, dead letters and upkeep on Redis: cut at any byte, on a full server, with few
rights."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import cwist_jq
from cwist_jq import DuplicateId, Item
from tests.fault.support import cut_points, drain, fails_within, leftovers, must_claim
from tests.observers import RedisObserver
from tests.proxy import DOWN, UP, Proxy
from tests.waiting import eventually

pytestmark = [pytest.mark.engine("redis"), pytest.mark.servers("all")]

POINTS = 14
OPERATION = 1.0

_LOST = (cwist_jq.LeaseLost, cwist_jq.ConnectionFailed, cwist_jq.OutcomeUnknown)


def _measure(proxy: Proxy, direction: str, call: Callable[[], Any]) -> int:
    """How many bytes the call sends that way."""
    proxy.forget()
    call()
    return sum(len(piece.data) for piece in proxy.pieces(direction))


@contextlib.contextmanager
def _cut(proxy: Proxy, queue: Any, point: int, direction: str) -> Any:
    """Cuts the connection that far into what the block sends or receives."""
    queue.dead_count()  # so that the cut does not strike a new connection's greeting
    proxy.cut_after(point, direction)
    try:
        yield
    finally:
        proxy.flow()


# ---- cuts ----


@pytest.mark.slow
@pytest.mark.parametrize("direction", [UP, DOWN])
@pytest.mark.parametrize("delay", [0, 0.3], ids=["now", "delayed"])
def test_a_cut_enqueue_with_a_key_is_sent_again(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    direction: str,
    delay: float,
) -> None:
    """SPEC 5: with a dedupe key the outcome is known: stored once, whatever byte was cut."""
    queue = open_queue(proxy_url, queue_name, operation_timeout=3.0)
    queue.enqueue(b"warm", dedupe_key="warm", delay=delay)
    total = _measure(
        proxy, direction, lambda: queue.enqueue(b"measure", dedupe_key="measure", delay=delay)
    )
    points = cut_points(total, POINTS)
    ids = []
    for point in points:
        with _cut(proxy, queue, point, direction):
            ids.append(queue.enqueue(b"%d" % point, dedupe_key=f"k{point}", delay=delay))
    assert len(set(ids)) == len(points)
    for point, first in zip(points, ids, strict=True):
        assert queue.enqueue(b"again", dedupe_key=f"k{point}") == first
    drained = Counter(drain(make_queue(), observer))
    assert drained == dict.fromkeys([b"warm", b"measure", *(b"%d" % point for point in points)], 1)
    assert leftovers(observer, queue_name) == []


@pytest.mark.slow
@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_cut_batch_of_both_kinds_tells_the_truth(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    direction: str,
) -> None:
    """D08: jobs with a key are stored once for sure; of the others nobody doubles one."""
    queue = open_queue(proxy_url, queue_name, operation_timeout=3.0)

    def batch(tag: str) -> list[Item]:
        return [
            Item(f"{tag}-{n}".encode(), dedupe_key=f"{tag}-{n}" if n % 2 else None)
            for n in range(20)
        ]

    queue.enqueue_many(batch("warm"))
    total = _measure(proxy, direction, lambda: queue.enqueue_many(batch("measure")))
    for point in cut_points(total, POINTS):
        with _cut(proxy, queue, point, direction):
            try:
                results: list[Any] = list(queue.enqueue_many(batch(f"b{point}")))
            except cwist_jq.Error as error:
                results = list(error.results or [])
        stored = Counter(fields[b"payload"] for _, fields in observer.entries(queue_name))
        for n, result in enumerate(results):
            count = stored[f"b{point}-{n}".encode()]
            if isinstance(result, str):
                assert count == 1
            elif isinstance(result, cwist_jq.NotSent):
                assert count == 0
            else:
                assert isinstance(result, cwist_jq.OutcomeUnknown)
                assert n % 2 == 0, "a job with a key has a known outcome"
                assert count <= 1


@pytest.mark.slow
@pytest.mark.parametrize("direction", [UP, DOWN])
@pytest.mark.parametrize("end", ["ack", "ack_many", "ack_and_claim", "nack", "release", "dead"])
def test_a_cut_end_of_a_job_with_a_key(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    direction: str,
    end: str,
) -> None:
    """L05, D08: the key lives as long as its job, and no longer."""
    queue = open_queue(proxy_url, queue_name, operation_timeout=3.0, visibility_timeout=1.5)
    ends: dict[str, Callable[[Any], Any]] = {
        "ack": lambda job: job.ack(),
        "ack_many": lambda job: queue.ack_many([job]),
        "ack_and_claim": lambda job: queue.ack_and_claim([job], 1, 0),
        "nack": lambda job: job.nack(delay=0.2),
        "release": lambda job: job.release(delay=0.2),
        "dead": lambda job: job.nack("the end", dead=True),
    }

    def held(key: str) -> Any:
        queue.enqueue(key.encode(), dedupe_key=key)
        return must_claim(queue)

    ends[end](held("warm"))
    warm = held("measure")
    while warm.payload != b"measure":
        warm.ack()
        warm = must_claim(queue)
    total = _measure(proxy, direction, lambda: ends[end](warm))
    drain(make_queue(visibility_timeout=1.5), observer)
    points = cut_points(total, POINTS)
    jobs = [held(f"k{point}") for point in points]
    for point, job in zip(points, jobs, strict=True):
        with _cut(proxy, queue, point, direction), contextlib.suppress(*_LOST):
            ends[end](job)
    steady = make_queue(visibility_timeout=1.5)
    for key, value in observer.dedupe(queue_name).items():
        assert isinstance(steady.enqueue(b"again", dedupe_key=key), DuplicateId)
        assert value.split()[0] in {job.id for job in jobs}
    drained = Counter(drain(steady, observer))
    letters = observer.dead(queue_name)
    assert max(Counter(letter.id for letter in letters).values(), default=1) == 1
    assert max(drained.values(), default=1) == 1
    if end == "dead":
        assert not drained
    elif end not in ("nack", "release"):
        assert not letters
        assert not drained
    else:
        assert drained == dict.fromkeys([b"k%d" % point for point in points], 1)
    assert leftovers(observer, queue_name, dead=len(letters)) == []


@pytest.mark.slow
@pytest.mark.parametrize("direction", [UP, DOWN])
@pytest.mark.parametrize("move", ["requeue", "purge"])
def test_a_cut_move_of_a_dead_letter(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    direction: str,
    move: str,
) -> None:
    """CASES A8: whatever byte was cut, no letter is doubled and none is lost."""
    queue = open_queue(proxy_url, queue_name, operation_timeout=3.0)
    steady = make_queue()

    def dead(payload: bytes) -> str:
        job_id: str = steady.enqueue(payload)
        must_claim(steady).nack(dead=True)
        return job_id

    def call(job_id: str) -> None:
        getattr(queue.dead, move)(job_id)

    call(dead(b"warm"))
    steady.purge()
    measured = dead(b"measure")
    total = _measure(proxy, direction, lambda: call(measured))
    steady.purge()
    points = cut_points(total, POINTS)
    ids = [dead(b"%d" % point) for point in points]
    unknown = []
    for point, job_id in zip(points, ids, strict=True):
        with _cut(proxy, queue, point, direction):
            try:
                call(job_id)
            except cwist_jq.OutcomeUnknown:
                unknown.append(job_id)
    assert observer.dead(queue_name) == []
    assert len(unknown) <= (0 if move == "purge" else len(points) - 1)
    ready = Counter(fields[b"cwist-id"].decode() for _, fields in observer.entries(queue_name))
    assert ready == ({} if move == "purge" else dict.fromkeys(ids, 1))
    drain(steady, observer)
    assert leftovers(observer, queue_name) == []


@pytest.mark.slow
@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_cut_purge_is_whole_or_not_yet(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    direction: str,
) -> None:
    """A second call finishes it; a key never outlives its job."""
    queue = open_queue(proxy_url, queue_name, operation_timeout=3.0)

    def fill() -> None:
        queue.enqueue_many(
            [Item(b"x", dedupe_key=f"k{n}", delay=60 if n % 2 else 0) for n in range(40)]
        )

    fill()
    queue.purge()
    fill()
    total = _measure(proxy, direction, queue.purge)
    for point in cut_points(total, POINTS):
        fill()
        with _cut(proxy, queue, point, direction), contextlib.suppress(cwist_jq.OutcomeUnknown):
            queue.purge()
        left = observer.ready_and_claimed(queue_name) + observer.delayed(queue_name)
        assert left == len(observer.dedupe(queue_name))
        assert left in (0, 40)
        queue.purge()
        assert leftovers(observer, queue_name) == []


# ---- scripts that the server forgot ----


def test_scripts_are_taught_again(
    make_queue: Callable[..., Any], observer: Any, queue_name: str
) -> None:
    """SCRIPT FLUSH before each call; nothing is done twice, and nothing is told wrongly."""
    queue = make_queue(max_retries=1)

    def forgotten(call: Callable[[], Any]) -> Any:
        observer.client.script_flush()
        return call()

    items = [Item(b"%d" % n, dedupe_key=f"k{n}" if n % 2 else None) for n in range(6)]
    forgotten(lambda: queue.enqueue_many(items))
    jobs = queue.claim_many(6, 1)
    forgotten(lambda: queue.ack_many(jobs[:2]))
    forgotten(lambda: queue.ack_and_claim(jobs[2:4], 1, 0))
    forgotten(lambda: queue.nack_many(jobs[4:]))
    assert len(forgotten(lambda: list(queue.dead))) == 2
    forgotten(lambda: queue.dead.requeue(jobs[4].id))
    forgotten(lambda: queue.dead.purge(jobs[5].id))
    assert forgotten(queue.stats).ready == 1
    forgotten(queue.pause)
    forgotten(queue.resume)
    assert forgotten(queue.purge) == 1
    assert leftovers(observer, queue_name) == []


# ---- full ----


def test_a_full_server(
    make_server: Callable[..., Any],
    make_observer: Callable[[str, str], Any],
    open_queue: Callable[..., Any],
    queue_name: str,
) -> None:
    """S03: what stores is refused and leaves nothing; what ends or removes goes on."""
    server = make_server()
    watcher: RedisObserver = make_observer("redis", server.url)
    queue = open_queue(server.url, queue_name, operation_timeout=OPERATION)
    for number in range(20):
        queue.enqueue(b"%d" % number + b"x" * 10_000, dedupe_key=f"k{number}")
    queue.enqueue(b"delayed", delay=60, dedupe_key="delayed")
    for _ in range(3):
        must_claim(queue).nack(dead=True)
    letters = [letter.id for letter in queue.dead]
    watcher.client.config_set("maxmemory", "1mb")
    before = (watcher.keys(queue_name), watcher.dedupe(queue_name))
    for extra in ({"dedupe_key": "n"}, {"delay": 5}, {"dedupe_key": "m", "delay": 5}):
        with fails_within(cwist_jq.Refused, OPERATION) as caught:
            queue.enqueue(b"no", **extra)
        assert "OOM" in str(caught.value)
    with fails_within(cwist_jq.Refused, OPERATION):
        queue.enqueue_all([Item(b"1", dedupe_key="n"), Item(b"2", delay=1)])
    assert (watcher.keys(queue_name), watcher.dedupe(queue_name)) == before
    assert isinstance(queue.enqueue(b"again", dedupe_key="delayed"), DuplicateId)
    assert [letter.id for letter in queue.dead] == letters
    queue.dead.purge(letters[0])
    queue.dead.requeue(letters[1])  # moved, and so it takes no more memory
    must_claim(queue).nack()
    must_claim(queue).release(delay=60)
    must_claim(queue).nack(dead=True)
    must_claim(queue).ack()
    held = must_claim(queue)
    assert len(watcher.dedupe(queue_name)) == 20 - 3 - 2 + 1
    assert queue.stats().claimed == 1
    assert queue.purge() == 20 - 3 - 2 - 1 + 1 + 1
    held.ack()
    assert leftovers(watcher, queue_name, dead=2) == []
    watcher.client.config_set("maxmemory", 0)
    queue.dead.requeue(letters[2])
    assert len(drain(queue, watcher)) == 1


# ---- rights ----

#: What an operator needs, and what each call of it is.
_CALLS: dict[str, Callable[[Any], Any]] = {
    "key": lambda queue: queue.enqueue(b"key", dedupe_key="new"),
    "delay": lambda queue: queue.enqueue(b"delay", delay=60),
    "all": lambda queue: queue.enqueue_all([Item(b"1", dedupe_key="all"), Item(b"2", delay=60)]),
    "ack": lambda queue: must_claim(queue, 2.0).ack(),
    "nack": lambda queue: must_claim(queue, 2.0).nack(delay=60),
    "dead": lambda queue: must_claim(queue, 2.0).nack(dead=True),
    "list": lambda queue: queue.dead.page(),
    "read": lambda queue: queue.dead.read(queue.letter),
    "requeue": lambda queue: queue.dead.requeue(queue.letter),
    "remove": lambda queue: queue.dead.purge(queue.letter),
    "stats": lambda queue: queue.stats(),
    "pause": lambda queue: queue.pause(),
    "purge": lambda queue: queue.purge(),
}


@pytest.mark.parametrize("name", _CALLS)
def test_a_denied_right_changes_nothing_by_halves(
    make_server: Callable[..., Any], open_queue: Callable[..., Any], queue_name: str, name: str
) -> None:
    """S05: each command that the script uses is denied in turn: the job is where it was, or where
    it was to be, once, and so is its key."""
    server = make_server(acl="user default on nopass ~* &* +@all\n")
    admin = RedisObserver(server.url)
    call = _CALLS[name]
    denied = 0
    rights = _used_rights(admin, open_queue, server, f"{queue_name}-0", call)
    assert rights
    for number, right in enumerate(rights, 1):
        queue_name_here = f"{queue_name}-{number}"
        queue = _prepared(open_queue, server.url, queue_name_here)
        user = f"user-{number}"
        admin.client.execute_command("ACL", "SETUSER", user, "on", ">pw", "~*", "+@all", right)
        limited = open_queue(
            f"redis://{user}:pw@{server.host}:{server.port}",
            queue_name_here,
            operation_timeout=OPERATION,
        )
        before = _census(admin, queue_name_here)
        with contextlib.suppress(cwist_jq.Denied):
            try:
                call(_WithLetter(limited, queue.letter))
            except cwist_jq.Denied:
                denied += 1
                raise
        after = _census(admin, queue_name_here)
        assert max(after.values(), default=1) == 1, f"{right}: doubled: {after}"
        lost = set(before) - set(after)
        allowed = 1 if name in ("ack", "remove") else 3 if name == "purge" else 0
        assert len(lost) <= allowed, f"{right}: lost {lost}"
        for key, value in admin.dedupe(queue_name_here).items():
            if value.split()[0] not in after:
                # A key whose job is gone is another's for the asking.
                assert not isinstance(queue.queue.enqueue(b"x", dedupe_key=key), DuplicateId)
    assert denied
    admin.close()


class _WithLetter:
    """A queue, and the id of a dead letter of it."""

    def __init__(self, queue: Any, letter: str) -> None:
        self.queue = queue
        self.letter = letter

    def __getattr__(self, name: str) -> Any:
        return getattr(self.queue, name)


def _prepared(open_queue: Callable[..., Any], url: str, name: str) -> _WithLetter:
    """A queue with a dead letter, a ready job with a key and a delayed one."""
    queue = open_queue(url, name, operation_timeout=OPERATION)
    letter = queue.enqueue(b"dead", dedupe_key="gone")
    must_claim(queue).nack(dead=True)
    queue.enqueue(b"ready", dedupe_key="ready")
    queue.enqueue(b"delayed", dedupe_key="delayed", delay=60)
    return _WithLetter(queue, letter)


def _census(admin: RedisObserver, name: str) -> Counter[str]:
    """How often each job is somewhere."""
    found = Counter(
        fields.get(b"cwist-id", entry.encode()).decode() for entry, fields in admin.entries(name)
    )
    found.update(list(admin.waiting(name)))
    found.update(letter.id for letter in admin.dead(name))
    return found


def _used_rights(
    admin: RedisObserver, open_queue: Callable[..., Any], server: Any, name: str, call: Any
) -> list[str]:
    """The commands that the server ran for a call, as rights that are taken away."""
    queue = _prepared(open_queue, server.url, name)
    queue.stats()
    admin.client.config_resetstat()
    call(queue)
    used = admin.client.info("commandstats")
    commands = {key.removeprefix("cmdstat_").partition("|")[0] for key in used}
    return sorted(f"-{command}" for command in commands - {"config", "info", "hello", "client"})


def test_a_pause_holds_for_workers_that_come_later(
    make_queue: Callable[..., Any], observer: Any, queue_name: str
) -> None:
    """A worker that comes later is paused from its first claim on."""
    make_queue().pause()
    late = make_queue()
    late.enqueue(b"x")
    assert late.claim(0) is None
    assert observer.claimed(queue_name) == 0
    make_queue().resume()
    assert eventually(lambda: late.claim(0)).payload == b"x"
