"""The example of batches in docs/c-library.md compiles and does what it says, on both engines."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/c-library.md").read_text(encoding="utf-8")
LIBRARY = ROOT / "build" / "c"

MAIN = """
int main(int argc, char **argv)
{
    cwist_job_conn_t *conn = NULL;
    cwist_job_queue_t *queue = NULL;
    cwist_job_queue_opts_t opts = {.name = argv[argc - 1]};
    cwist_job_conn_open(&conn, argv[1], NULL);
    cwist_job_queue_open(&queue, conn, &opts);
    store(queue);
    work(queue);
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
    return (int)cwist_job_live_handles();
}
"""


def test_the_example_of_batches(url: str, queue_name: str, tmp_path: Path) -> None:
    (example,) = re.findall(r"```c\n(.*?)```", PAGE, re.DOTALL)
    source = tmp_path / "batches.c"
    source.write_text(example.replace("5000", "500") + MAIN, encoding="utf-8")
    program = tmp_path / "batches"
    flags = ["-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", f"-L{LIBRARY}", "-lcwist_jq"]
    subprocess.run(
        ["cc", str(source), *flags, f"-Wl,-rpath,{LIBRARY}", "-o", str(program)], check=True
    )
    done = subprocess.run(
        [str(program), url, queue_name], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    stored, words = done.stdout.splitlines()[:2], done.stdout.splitlines()[2:]
    assert all(re.fullmatch(rf"{at}: CWIST_SUCCESS \S+", line) for at, line in enumerate(stored))
    assert words == ["one", "two"]
    assert "ack:" not in done.stderr
