"""Redis users with few rights: exactly the documented ones are enough, and each is needed."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import cwist_jq
from tests import servers
from tests.fault.support import drain, leftovers, must_claim
from tests.observers import RedisObserver

pytestmark = [pytest.mark.engine("redis"), pytest.mark.servers("all")]

SECRET = "s3cret-w0rd"


def _documented() -> list[str]:
    """The words of the ACL line in docs/states.md, from the first right on."""
    text = (servers.ROOT / "docs" / "states.md").read_text()
    found = re.search(r"^\s*ACL SETUSER [^`]*?(?:\n\s*\n|\n```)", text, re.MULTILINE)
    assert found is not None, "docs/states.md has no line with ACL SETUSER"
    return found[0].replace("\\\n", " ").replace("```", " ").split()[3:]


def _rights() -> list[str]:
    return [word for word in _documented() if word.startswith("+")]


@pytest.fixture
def admin(make_server: Callable[..., Any]) -> Any:
    """A server with an ACL file, through its almighty user."""
    server = make_server(acl="user default on nopass ~* &* +@all\n")
    return RedisObserver(server.url)


def _user_url(admin: Any, queue: str, rights: list[str]) -> str:
    kwargs = admin.client.connection_pool.connection_kwargs
    words = ["reset", "on", f">{SECRET}", f"~cwist:jq:{queue}:*", *rights]
    admin.client.execute_command("ACL", "SETUSER", f"worker-{queue}", *words)
    return f"redis://worker-{queue}:{SECRET}@{kwargs['host']}:{kwargs['port']}"


class _Life:
    """Everything that a worker and a producer do, step by step, until a step is denied."""

    def __init__(self, url: str, name: str, open_queue: Callable[..., Any]) -> None:
        options = {"operation_timeout": 1.0, "visibility_timeout": 0.2}
        self.queue = open_queue(url, name, max_retries=2, **options)
        self.later = open_queue(url, name, max_retries=9, retry_delay=0.1, **options)
        #: Jobs that were stored and must be somewhere until they are acked.
        self.stored: set[bytes] = set()

    def _enqueue(self, payload: bytes) -> None:
        self.queue.enqueue(payload, type="t")
        self.stored.add(payload)

    def _ack(self, queue: Any) -> None:
        job = must_claim(queue, 2.0)
        self.stored.discard(job.payload)  # a denied XACK behind an XDEL has acked all the same
        job.ack()

    def live(self) -> None:
        self._enqueue(b"acked")
        self._ack(self.queue)
        self._enqueue(b"released")
        must_claim(self.queue, 2.0).release()
        job = must_claim(self.queue, 2.0)
        job.extend()
        job.nack()
        must_claim(self.queue, 2.0).nack(reason="dead")
        self._enqueue(b"delayed")
        must_claim(self.later, 2.0).nack()
        must_claim(self.later, 2.0)  # its lease runs out
        self._ack(self.later)
        assert self.queue.dead_count() == 1
        assert self.queue.claim(0.3) is None


def test_the_documented_rights_are_enough(
    admin: Any, queue_name: str, open_queue: Callable[..., Any]
) -> None:
    """S05: a full life with exactly the line of the documentation."""
    _Life(_user_url(admin, queue_name, _rights()), queue_name, open_queue).live()
    assert leftovers(admin, queue_name, dead=1) == []
    admin.close()


def test_each_missing_right_is_named(
    admin: Any, queue_name: str, open_queue: Callable[..., Any]
) -> None:
    """S05: without one of them, either it was optional or the error names the command."""
    rights = _rights()
    assert len(rights) > 3

    def without(right: str) -> str | None:
        """Lives without it; the command, when that worked."""
        name = f"{queue_name}-{rights.index(right)}"
        url = _user_url(admin, name, [one for one in rights if one != right])
        command = right.lstrip("+").partition("|")[0]
        life = _Life(url, name, open_queue)
        needed = False
        try:
            life.live()
        except cwist_jq.Denied as error:
            needed = True
            assert command in str(error).lower(), f"without {right}: {error}"  # noqa: PT017
            assert SECRET not in str(error)  # noqa: PT017
        # Nothing is lost: with all rights every job is still there, or dead.
        again = open_queue(_user_url(admin, name, rights), name, visibility_timeout=0.2)
        found = {*drain(again, admin), *(letter.payload for letter in admin.dead(name))}
        assert life.stored <= found, f"without {right} a job was lost"
        return None if needed else command

    with ThreadPoolExecutor(8) as pool:
        optional = [command for command in pool.map(without, rights) if command is not None]
    print("optional:", optional)
    assert set(optional) <= {"info", "client", "config", "hello", "command", "ping", "select"}
    admin.close()


def test_a_wrong_password(make_server: Callable[..., Any]) -> None:
    """S05: denied at once, with the server's words and without the password."""
    server = make_server(password="right")
    for credentials in (f":{SECRET}@", f"nobody:{SECRET}@", ""):
        url = f"redis://{credentials}{server.host}:{server.port}"
        with pytest.raises(cwist_jq.Denied) as caught:
            cwist_jq.connect(url)
        assert SECRET not in str(caught.value)
        assert re.search("WRONGPASS|NOAUTH|NOPERM", str(caught.value))


def test_rights_that_are_taken_away_later(
    admin: Any, queue_name: str, open_queue: Callable[..., Any]
) -> None:
    """S05: a live handle gets the named error, and works again when the rights are back."""
    url = _user_url(admin, queue_name, ["+@all"])
    queue = open_queue(url, queue_name, operation_timeout=1.0)
    queue.enqueue(b"one")
    admin.client.acl_setuser(f"worker-{queue_name}", commands=["-xadd"])
    with pytest.raises(cwist_jq.Denied) as caught:
        queue.enqueue(b"two")
    assert "xadd" in str(caught.value).lower()
    assert SECRET not in str(caught.value)
    admin.client.acl_setuser(f"worker-{queue_name}", commands=["+xadd"])
    queue.enqueue(b"two")
    assert drain(queue, admin) == [b"one", b"two"]
    admin.close()
