"""What the matrix of roots reads from its logs, prints, and refuses."""

from __future__ import annotations

import subprocess
import sys

from tests import matrix, servers

_LOG = """
100% tests passed, 0 tests failed out of 11

91% tests passed, 1 tests failed out of 11
The following tests did not run:
\t  5 - ct_jobs_redis (Skipped)
1 failed, 300 passed, 2 skipped, 7 deselected in 100.25s (0:01:40)
40 passed in 9.00s
=========== 3 passed, 1 error in 0.50s ===========
lifecycle: cwist_jq 0.1.0, redis: acked, retried: as they should be, in 5.6 s
lifecycle: nats: retried: no job within 10 s
"""


def test_counts_of_both_runners_are_added_up() -> None:
    assert matrix.count(_LOG) == matrix.Counts(
        passed=11 + 9 + 300 + 40 + 3 + 1, failed=3, skipped=3
    )


def test_what_was_run_again_is_not_counted_twice() -> None:
    log = """
91% tests passed, 1 tests failed out of 11
c tests: RUN AGAIN, ALONE: 1 that failed: ct_jobs_redis
100% tests passed, 0 tests failed out of 1
2 failed, 300 passed in 100.25s (0:01:40)
test: RUN AGAIN, ALONE: 2 that failed
1 failed, 1 passed in 5.00s
"""
    assert matrix.count(log) == matrix.Counts(passed=11 + 301, failed=1, again=3)


def test_a_log_without_closing_lines_counts_nothing() -> None:
    assert matrix.count("12 passed the door in 3 hours\n") == matrix.Counts()


def test_a_failed_root_stands_in_the_table() -> None:
    rows = [
        matrix.Row("one", good=True, seconds=61.4, counts=matrix.Counts(5), versions={"gcc": "14"}),
        matrix.Row("two", good=False, seconds=5.0, counts=matrix.Counts(4, 1)),
    ]
    lines = matrix.table(rows).splitlines()
    assert lines[2].startswith("| one | - | 14 | - |")
    assert lines[2].endswith("| 5 | 0 | 0 | 0 | 1:01 | good |")
    assert lines[3].endswith("| 4 | 1 | 0 | 0 | 0:05 | FAILED |")


def test_an_unknown_root_is_refused_with_the_known_names() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.matrix", "debian99"],
        cwd=servers.ROOT,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "debian99" in done.stderr
    assert all(name in done.stderr for name in matrix.ROOTS)
