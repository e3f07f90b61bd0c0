"""The benchmarks run, and report what they measured. No test looks at how quick anything was."""

from __future__ import annotations

import fcntl
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import costs, crowd, goals, pairs, report, rig, run, run_peers, tables, workers
from tests import servers
from tests.observers import observe

SCALE = 0.001
_PAGE = servers.ROOT / "docs" / "performance.md"


@pytest.fixture(scope="session")
def programs() -> None:
    """The programs of build/bench, built by one process at a time."""
    build = servers.ROOT / "build" / "bench"
    build.mkdir(parents=True, exist_ok=True)
    source = servers.ROOT / "benchmarks" / "c"
    with (build / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for words in (["-S", source, "-B", build], ["--build", build, "-j", "2"]):
            subprocess.run(["cmake", *map(str, words)], check=True, capture_output=True)


needs_programs = pytest.mark.usefixtures("programs", "server")


# ---- measuring ----


def _rows(tmp_path: Path, engine: str, group: str, *words: str) -> dict[str, dict[str, Any]]:
    path = tmp_path / "results.json"
    tiny = ["--rounds", "1", "--scale", str(SCALE), "--out", str(path)]
    assert run.main(["--groups", group, "--engines", engine, *tiny, *words]) == 0
    results = json.loads(path.read_text())
    assert results["machine"][engine] != "absent"
    assert group in results["seconds"]
    found = {row["name"]: row for row in results["rows"]}
    for row in found.values():
        assert (row["group"], row["engine"]) == (group, engine)
        assert all(value > 0 for of in row["values"].values() for value in of)
    return found


@pytest.mark.slow
@needs_programs
def test_pairs(tmp_path: Path, engine: str) -> None:
    rows = _rows(tmp_path, engine, "pairs")
    assert set(rows) == {
        "enqueue",
        "enqueue, pinned",
        "enqueue-many",
        "drain",
        "drain-next",
        "drain-one",
        "drain-one, pinned",
    }
    for row in rows.values():
        assert set(rig.SIDES) <= set(row["values"])
        assert row["facts"]["jobs"] % rig.DEPTH == 0


@pytest.mark.slow
@needs_programs
def test_latency(tmp_path: Path, engine: str) -> None:
    start = time.monotonic()
    rows = _rows(tmp_path, engine, "latency")
    all_of_it = (time.monotonic() - start) * 1e6
    assert set(rows) == {"p50", "p99"}
    for side in rig.SIDES:
        assert rows["p50"]["values"][side] <= rows["p99"]["values"][side]
        assert rows["p99"]["values"][side][0] < all_of_it


@pytest.mark.slow
@needs_programs
def test_payloads(tmp_path: Path, engine: str) -> None:
    rows = _rows(tmp_path, engine, "payloads")
    sizes = {row["facts"]["size"] for row in rows.values()}
    assert sizes == {100, 10_000, 1_000_000}
    assert len(rows) == 6


@pytest.mark.slow
@needs_programs
def test_workers(tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "WORKERS", [1, 3])
    rows = _rows(tmp_path, engine, "workers")
    assert set(rows) == {"drain-one, 1 workers", "drain-one, 3 workers", "drain of a million"}


@pytest.mark.slow
@needs_programs
def test_crowds(tmp_path: Path, engine: str) -> None:
    rows = _rows(tmp_path, engine, "crowds", "--sides", "bare,c")
    assert {row["facts"]["kind"] for row in rows.values()} == set(crowd.KINDS)
    assert {row["facts"]["crowd"] for row in rows.values()} == {1_000, 1_000_000}


@needs_programs
def test_footprint(tmp_path: Path, engine: str) -> None:
    rows = _rows(tmp_path, engine, "footprint")
    assert set(rows) == {
        "worker",
        "server, empty",
        "server, 100 jobs waiting",
        "start of the interpreter",
    }


@needs_programs
def test_costs(tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "COUNTERS", [costs.ServerWork()])
    rows = _rows(tmp_path, engine, "costs", "--sides", "bare")
    assert set(rows) == {"enqueue", "enqueue-many", "drain-one", "drain"}
    # One XADD; a message with a job and one with its ack.
    assert rows["enqueue"]["values"]["bare"] == [{"redis": 1, "nats": 2}[engine]]


@needs_programs
@pytest.mark.parametrize("kind", crowd.KINDS)
def test_a_crowd_is_what_it_says(engine: str, kind: str) -> None:
    with rig.rig(engine) as ground:
        queue = ground.queue()
        crowd.make(ground, queue, kind, 30)
        ours = observe(engine, ground.server.url)
        assert len(ours.dead(queue)) == (30 if kind == "dead" else 0)
        delayed_as_claimed = kind == "delayed" and engine == "nats"
        assert ours.claimed(queue) == (30 if kind == "in flight" or delayed_as_claimed else 0)
        if engine == "redis":
            assert ours.delayed(queue) == (30 if kind == "delayed" else 0)
        stored = kind in {"waiting", "in flight"} or delayed_as_claimed
        assert ours.ready_and_claimed(queue) == (30 if stored else 0)
        ours.close()


@needs_programs
def test_a_program_that_fails_spoils_the_numbers(engine: str) -> None:
    with rig.rig(engine) as ground:
        queue = ground.queue()
        ground.fill(queue, 10, size=7)
        with pytest.raises(rig.Broken, match="another length"):
            ground.run("bare", queue, "drain", 10, size=8)


def test_rounds_begin_with_each_side_in_turn() -> None:
    seen: list[str] = []

    def once(side: str) -> int:
        seen.append(side)
        return len(seen)

    values = rig.rounds(["a", "b", "c"], 3, once)
    assert "".join(seen) == "abcbcacab"
    assert values == {"a": [1, 6, 8], "b": [2, 4, 9], "c": [3, 5, 7]}


# ---- reporting ----


def _row(group: str, name: str, values: dict[str, list[float]]) -> dict[str, Any]:
    return {
        "group": group,
        "engine": "redis",
        "name": name,
        "unit": "jobs/s",
        "values": values,
        "facts": {},
    }


SAMPLE: dict[str, Any] = {
    "machine": {"processor": "a fast one"},
    "rows": [
        _row("pairs", "enqueue", {"bare": [100.0, 200.0, 400.0], "c": [98.0, 196.0, 100.0]}),
        _row("pairs", "drain", {"bare": [1000.0], "python": [700.0]}),
        _row("peers", "drain", {"huey": [20.0], "rq": [10.0]}),
        _row("crowds", "dead, 1000", {"c": [100.0]}),
        _row("crowds", "dead, 1000000", {"c": [50.0]}),
    ],
    "peers_absent": {"celery": "cannot be installed"},
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("C: enqueue one at a time", 0.98),  # of each round, not of the medians
        ("Python: claim_many(100) and ack_many, payload read", 0.7),
        ("Python: drain, to the best peer", 35.0),
        ("C: claim and ack beside 10^6 jobs, to 10^3", 0.5),
        ("Python: memory of a worker after a drain", None),
    ],
)
def test_goals_are_reckoned(name: str, value: float | None) -> None:
    goal = next(goal for goal in goals.GOALS if goal.name == name)
    measured = goal.measured(SAMPLE["rows"], "redis")
    assert measured == (None if value is None else pytest.approx(value))


def test_goals_have_limits_for_both_engines() -> None:
    for goal in goals.GOALS:
        assert set(goal.limits) == set(servers.KINDS)
        limit = goal.limits["redis"]
        assert goal.reached("redis", limit)
        assert not goal.reached("redis", limit * (1.01 if goal.at_most else 0.99))


def test_goals_name_rows_that_are_measured() -> None:
    names = {pair.name for pair in pairs.PAIRS}
    rows = [
        _row(
            group, name, {side: [2.0] for side in ("bare", "c", "python", "huey", *run_peers.OURS)}
        )
        for group, found in {
            "pairs": names,
            "peers": set(run_peers.ROWS),
            "latency": {"p50", "p99"},
            "footprint": {"worker", "start of the interpreter"},
            "crowds": {f"{kind}, {size}" for kind in crowd.KINDS for size in (1_000, 1_000_000)},
        }.items()
        for name in found
    ]
    for goal in goals.GOALS:
        assert goal.measured(rows, "redis") is not None, goal.name


def test_the_page_is_filled(tmp_path: Path) -> None:
    (tmp_path / "performance.md").write_text(_PAGE.read_text())
    results = tmp_path / "in.json"
    results.write_text(json.dumps(SAMPLE))
    words = [str(results), "--docs", str(tmp_path), "--no-plots"]
    assert report.main(words) == 0
    page = (tmp_path / "performance.md").read_text()
    assert "| a fast one |" in page
    assert "| Redis | drain | jobs/s | 1,000 |" in page
    assert "0.7, **short**" in page
    assert "Not measured: celery: cannot be installed" in page
    assert json.loads((tmp_path / "performance" / "results.json").read_text()) == SAMPLE
    assert report.main(words) == 0
    assert (tmp_path / "performance.md").read_text() == page


def test_the_page_has_every_table() -> None:
    marked = set(re.findall(r"<!-- table: ([a-z]+) -->", _PAGE.read_text()))
    assert marked == {"machine", "goals", "peers", *run.GROUPS}


def test_a_cell_tells_the_spread() -> None:
    table = tables.group(SAMPLE, "pairs")
    assert "200 (100 to 400)" in table


# ---- other queues ----


@pytest.fixture
def fake_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Makes a peer: a program in the form of benchmarks/peers, run by this Python."""

    def make(body: str) -> str:
        peer = run_peers.PROGRAMS / "peer.py"
        (tmp_path / "peer.py").write_text(peer.read_text())
        (tmp_path / "with_fake.py").write_text(body)
        (tmp_path / "fake.txt").write_text("./no-such-file.whl\n")
        monkeypatch.setattr(run_peers, "PROGRAMS", tmp_path)
        monkeypatch.setattr(run_peers, "HOMES", tmp_path)
        monkeypatch.setattr(run_peers, "_python", lambda _: Path(sys.executable))
        return "fake"

    return make


_FAKE = """
import peer

class Fake(peer.Peer):
    can = ("enqueue", "drain")

    def enqueue(self, stamp):
        pass

    def work(self):
        while True:
            peer.job("", 0)

peer.main(Fake)
"""


def test_a_peer_runs_what_it_can(fake_peer: Callable[[str], str]) -> None:
    name = fake_peer(_FAKE)
    assert run_peers._run(name, "", "enqueue", 5)["seconds"] > 0
    assert run_peers._run(name, "", "drain", 5)["seconds"] > 0
    assert run_peers._run(name, "", "enqueue-many", 5)["cannot"] == "enqueue-many"


def test_a_peer_that_cannot_be_installed_is_named(
    fake_peer: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = fake_peer(_FAKE)
    monkeypatch.setattr(run_peers, "HOMES", run_peers.HOMES / "homes")
    rows, absent = run_peers.measure([name], 1, SCALE)
    assert rows == []
    assert absent[name].startswith("cannot be installed")


def test_every_peer_has_a_program_and_pinned_versions() -> None:
    for name in run_peers.names():
        assert (run_peers.PROGRAMS / f"with_{name.replace('-', '_')}.py").exists()
        lines = (run_peers.PROGRAMS / f"{name}.txt").read_text().splitlines()
        assert all(re.fullmatch(r"[a-z_-]+(\[[a-z,]+\])?==[\w.]+", line) for line in lines)
