"""Measures other Python queues: `python -m benchmarks.run_peers --out RESULTS.json [huey rq …]`.

Beside them stands our worker, with sync and with async handlers, and a plain loop of claims. Each
of the others is installed at its pinned version into an environment of its own, for their needs
conflict. What cannot be installed or run is named in the results.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests import servers

from . import results
from .latency import WARM, percentile
from .rig import Broken, Program, Row, rig, rounds

PROGRAMS = Path(__file__).with_name("peers")
HOMES = servers.ROOT / "build" / "peers"

ENQUEUED, DRAINED, WAITED = 2_000, 2_000, 120
#: What drains more quickly has more to drain, so that it is measured for as long.
OURS_DRAINED = 40_000
#: What of ours runs beside them: the engine, and the word for benchmarks.handlers.
OURS = {
    f"cwist_jq-{kind}-{engine}": (engine, kind)
    for engine in servers.KINDS
    for kind in ("sync", "async", "claim")
}

#: A waiting worker must be up before the first job comes; the programs need as long to start.
_UP_S = 1.0

ROWS = {
    "enqueue": "jobs/s",
    "enqueue-many": "jobs/s",
    "drain": "jobs/s",
    "memory": "MiB",
    "p50": "us",
    "p99": "us",
}


def names() -> list[str]:
    """All peers."""
    return sorted(path.stem for path in PROGRAMS.glob("*.txt"))


def all_names() -> list[str]:
    """Ours, and all peers."""
    return [*OURS, *names()]


def engine_of(name: str) -> str:
    """The engine that a peer stands on."""
    if name in OURS:
        return OURS[name][0]
    return "nats" if name.endswith("nats") else "redis"


def _python(name: str) -> Path:
    return HOMES / name / "bin" / "python"


def installed(name: str) -> bool:
    """Whether the environment is there and up to date; ours is the one that runs this."""
    if name in OURS:
        return True
    ready = HOMES / name / "ready"
    wanted = (PROGRAMS / f"{name}.txt").read_text("utf-8")
    return ready.exists() and ready.read_text("utf-8") == wanted


def install(name: str) -> None:
    """Makes the environment of a peer; Broken says why it cannot be."""
    if installed(name):
        return
    print(f"bench: installing {name}", flush=True)
    wanted = PROGRAMS / f"{name}.txt"
    home = HOMES / name
    steps: list[list[str]] = [
        [sys.executable, "-m", "venv", "--clear", str(home)],
        [str(_python(name)), "-m", "pip", "install", "-q", "-r", str(wanted)],
    ]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            last = (done.stderr.strip() or "no reason").splitlines()[-1]
            raise Broken(f"cannot be installed: {last}")
    (home / "ready").write_text(wanted.read_text("utf-8"), "utf-8")


def _start(name: str, url: str, operation: str, count: int) -> Program:
    words = [url, operation, str(count)]
    if name in OURS:
        return Program([sys.executable, "-m", "benchmarks.handlers", OURS[name][1], *words])
    program = PROGRAMS / f"with_{name.replace('-', '_')}.py"
    return Program([str(_python(name)), str(program), *words])


def _run(name: str, url: str, operation: str, count: int) -> dict[str, Any]:
    program = _start(name, url, operation, count)
    program.go()
    return program.finish()


def _latencies(name: str, url: str, count: int) -> list[float]:
    waiting = _start(name, url, "wait", count)
    waiting.go()
    time.sleep(_UP_S)  # a library of others does not say when its worker listens
    _run(name, url, "add", count)
    return [ns / 1000 for ns in waiting.finish()["ns"][min(WARM, count // 2) :]]


def _once(name: str, scale: float) -> dict[str, float]:
    """One round of a peer: what each row got."""
    found: dict[str, float] = {}
    enqueued, drained, waited = (max(100, round(n * scale)) for n in (ENQUEUED, DRAINED, WAITED))
    with rig(engine_of(name)) as ground:
        for operation in ["enqueue", "enqueue-many"]:
            done = _run(name, ground.server.url, operation, enqueued)
            if "seconds" in done:
                found[operation] = enqueued / done["seconds"]
    fill = "enqueue"
    if name in OURS and OURS[name][1] != "claim":
        drained, fill = max(100, round(OURS_DRAINED * scale / 100) * 100), "enqueue-many"
    with rig(engine_of(name)) as ground:
        _run(name, ground.server.url, fill, drained)
        done = _run(name, ground.server.url, "drain", drained)
        found["drain"] = drained / done["seconds"]
        found["memory"] = done["resident_kib"] / 1024
    with rig(engine_of(name)) as ground:
        latencies = _latencies(name, ground.server.url, waited)
        found["p50"], found["p99"] = percentile(latencies, 0.5), percentile(latencies, 0.99)
    return found


def measure(chosen: Sequence[str], number: int, scale: float) -> tuple[list[Row], dict[str, str]]:
    """The rows of the peers that run, and why the others do not."""
    absent: dict[str, str] = {}
    running = []
    for name in chosen:
        try:
            install(name)
            _once(name, 0.0)
            running.append(name)
        except Broken as reason:
            absent[name] = str(reason).splitlines()[-1][-300:]
            print(f"bench: {name}: {absent[name]}", file=sys.stderr)
    found = rounds(running, number, lambda name: _once(name, scale))
    rows = []
    for engine in servers.KINDS:
        for row, unit in ROWS.items():
            values = {
                name: [one[row] for one in found[name]]
                for name in running
                if engine_of(name) == engine and row in found[name][0]
            }
            if values:
                rows.append(Row("peers", engine, row, unit, values))
    return rows, absent


def versions(chosen: Sequence[str]) -> dict[str, str]:
    """The pinned version of each peer."""
    peers = [name for name in chosen if name not in OURS]
    texts = ((name, (PROGRAMS / f"{name}.txt").read_text("utf-8")) for name in peers)
    return {name: text.splitlines()[-1] for name, text in texts}


def main(words: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run_peers", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help=f"of {', '.join(all_names())}; all when none is given"
    )
    parser.add_argument("--installed", action="store_true", help="only those installed before")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args(words)
    unknown = set(chosen.names) - set(all_names())
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    wanted = [n for n in chosen.names or all_names() if installed(n) or not chosen.installed]
    if not set(wanted) - set(OURS) and not chosen.names:
        print("bench: no peers are installed (make bench-peers)")
        return 0
    start = time.monotonic()
    try:
        rows, absent = measure(wanted, chosen.rounds, chosen.scale)
    except (Broken, servers.Unavailable) as reason:
        print(f"bench: {reason}", file=sys.stderr)
        return 1
    seconds = time.monotonic() - start
    facts = {"peers": versions(wanted), "peers_absent": absent}
    results.merge(chosen.out, "peers", rows, seconds, **facts)
    print(f"bench: peers: {len(rows)} rows in {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
