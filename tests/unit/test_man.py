"""The man pages: what a header comment lacks is told, and what it says is in the page."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType

import pytest

from tests.loading import load
from tests.servers import ROOT

CONTRACT = "cwist/sys/job/durable_queue.h"


@pytest.fixture
def gen_man() -> ModuleType:
    """The program, as a module."""
    return load(ROOT / "csrc" / "tools" / "gen_man.py")


@pytest.fixture
def headers(tmp_path: Path) -> Path:
    """A copy of the public headers."""
    shutil.copytree(ROOT / "include", tmp_path / "include")
    return tmp_path / "include"


def change(headers: Path, old: str, new: str) -> None:
    path = headers / CONTRACT
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            " * Returns: the deliveries so far",
            " * The deliveries so far",
            "attempts() has no line 'Ret",
        ),
        ("Errors: LEASE_LOST,", "Errors: LEASE_GONE,", "no code is called LEASE_GONE"),
        ("as for cwist_job_queue_ack()", "as for cwist_job_ack()", "no other function is called"),
        (" * Threads: any thread. A", " * Any thread. A", "no line 'Threads: "),
    ],
)
def test_a_comment_that_lacks_something(
    gen_man: ModuleType, headers: Path, old: str, new: str, said: str
) -> None:
    change(headers, old, new)
    with pytest.raises(gen_man.ManError, match=CONTRACT) as caught:
        gen_man.pages(headers)
    assert said in str(caught.value)


def test_a_function_without_a_comment(gen_man: ModuleType, headers: Path) -> None:
    change(headers, "/* cdef: end */", "\nCWIST_API int cwist_job_new(void);\n/* cdef: end */")
    with pytest.raises(gen_man.ManError, match=r"cwist_job_new\(\) has no comment"):
        gen_man.pages(headers)


def test_a_page_says_what_its_comment_says(gen_man: ModuleType, headers: Path) -> None:
    change(
        headers,
        "/* cdef: end */",
        """
/*
 * Counts the sheep, as cwist_job_id() does (NULL is allowed). It
 * waits up to timeout_ms.
 * Returns: their number, or 0.
 * Errors: IO (no fence), TIMEOUT.
 * Threads: one at a time.
 */
CWIST_API int cwist_job_new(const cwist_job_queue_opts_t *opts, uint64_t timeout_ms);
CWIST_API int cwist_job_old(void);
/* cdef: end */""",
    )
    made = gen_man.pages(headers)
    page = made["man3/cwist_job_new.3"]
    for part in (
        ".Nm cwist_job_new ,\n.Nm cwist_job_old\n.Nd counts the sheep\n",
        f".Sh SYNOPSIS\n.In {CONTRACT}\n.Ft int\n.Fo cwist_job_new\n",
        '.Fa "uint64_t timeout_ms"\n.Fc\n.Ft int\n.Fo cwist_job_old\n.Fc\n',
        "Counts the sheep, as\n.Xr cwist_job_id 3\ndoes\n.Pf ( Dv NULL\nis allowed).\n",
        "It waits up to\n.Fa timeout_ms .\n",
        ".Vt cwist_job_queue_opts_t\nare as follows.\nStrings are copied.\n",
        '.It Fa "uint32_t max_retries"\nDeliveries, the first included, 1 to 1000000; default 5.\n',
        ".Sh RETURN VALUES\nTheir number, or 0.\n",
        ".It Dv CWIST_ERROR_IO\nNo server could be reached, or the connection broke (no fence).\n",
        ".Sh THREADS\nOne at a time.\n",
        ".Sh SEE ALSO\n.Xr cwist_job_id 3 ,\n.Xr cwist-jq 7\n",
    ):
        assert part in page
    assert made["man3/cwist_job_old.3"] == ".so man3/cwist_job_new.3\n"
    assert (
        ".It Xr cwist_job_new 3\n.It Xr cwist_job_old 3\ncounts the sheep\n"
        in made["man7/cwist-jq.7"]
    )
