"""cwist_jq beside other users of the same libraries, imported in a given order.

    beside.py ssl,hiredis,cwist_jq URL…

The package hiredis holds the code of the Redis client too, and ssl another OpenSSL. Each module
does real work after all are loaded; that of cwist_jq is lifecycle.py, which lies beside this file.
"""

from __future__ import annotations

import contextlib
import importlib
import sys


def work_of_ssl() -> None:
    """A client's first words of a handshake: keys are made, digests computed."""
    ssl = importlib.import_module("ssl")
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    if len(outgoing.read()) < 100:
        sys.exit("beside: ssl wrote no ClientHello")


def work_of_hiredis() -> None:
    """A reply is parsed."""
    reader = importlib.import_module("hiredis").Reader()
    reader.feed(b"*2\r\n$3\r\nabc\r\n:42\r\n")
    if reader.gets() != [b"abc", 42]:
        sys.exit("beside: hiredis did not parse a reply")


def main() -> int:
    """Loads, then works; the exit code of the life cycle."""
    order, *urls = sys.argv[1:]
    for name in order.split(","):
        importlib.import_module(name)
    work = {"ssl": work_of_ssl, "hiredis": work_of_hiredis}
    for name in order.split(","):
        if name in work:
            work[name]()
    lifecycle = importlib.import_module("lifecycle")
    sys.argv = ["lifecycle.py", "--engines", "redis,nats", *urls]
    code = lifecycle.main()
    for once_more in work.values():
        once_more()
    if code == 0:
        print(f"beside: {order}: as it should be")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
