from __future__ import annotations

from cwist_jq.cli import exits
from tests.cli.program import Program


def test_it_measures_and_leaves_nothing(program: Program) -> None:
    before = program("stats", "--json").good().records
    found = program("bench", "--jobs", "250", "--batch", "100", "--json").good().records
    assert [step["step"] for step in found] == [
        "enqueue, single",
        "claim and ack, single",
        "enqueue",
        "claim and ack",
    ]
    assert [step["jobs"] for step in found] == [25, 25, 250, 250]
    assert all(step["per_second"] > 0 for step in found)
    assert all(0 < step["p50_ms"] <= step["p99_ms"] for step in found)
    after = program("stats", "--json").good().records
    bench = [record for record in after if "bench" in record["queue"]]
    assert bench == [record for record in before if "bench" in record["queue"]] == []


def test_a_bar_on_a_terminal_only(program: Program) -> None:
    with program.terminal("bench", "--jobs", "100") as terminal:
        assert "━" in terminal.read()
        assert terminal.end() == exits.DONE
    done = program("bench", "--jobs", "100").good()
    assert len(done.out.splitlines()) == 5
