"""The cases of tests/cases.toml and the tests that show them: docs/cases.md.

python -m tests.cases          writes the page anew
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent
PAGE = FOLDER.parent / "docs" / "cases.md"
ENGINES = {"redis": "Redis", "nats": "NATS"}
#: Tests of one file that are named each; of more, their number is said.
FEW = 3

_ID = re.compile(r"\b[A-Z][0-9]{2}\b")
_HEAD = """\
# Cases

What queues like this one are known to get wrong, and the tests that show that ours does not. The
ids stand in the docstrings of the tests. P0 loses or wedges jobs, or ends the process; P1 is wrong
or double work; P2 is comfort. This page is made from the tests by `python -m tests.cases`; a test
fails when it is out of date, or when a P0 or P1 case has no test on an engine that it names.
"""


@dataclass(frozen=True)
class Test:
    """A test, or a file of them, that names cases."""

    file: str
    #: Empty for what a file says of itself, and in C.
    name: str
    ids: frozenset[str]
    engines: frozenset[str]


@dataclass
class Case:
    """One case and what shows it."""

    id: str
    grade: str
    engines: frozenset[str]
    rule: str
    #: What no test shows, and why.
    gap: str | None
    tests: list[Test] = field(default_factory=list)

    @property
    def missing(self) -> frozenset[str]:
        """The engines on which no test shows it; {"any"} when no test does at all."""
        if not self.tests:
            return frozenset({"any"})
        return self.engines - {engine for test in self.tests for engine in test.engines}


def _engines_of(marks: list[ast.expr]) -> set[str]:
    """The engines that the markers of a test or a file leave."""
    left = set(ENGINES)
    for mark in marks:
        for call in ast.walk(mark):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.engine":
                left &= {str(ast.literal_eval(word)) for word in call.args}
    return left


def _marks_of_file(tree: ast.Module) -> list[ast.expr]:
    return [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]


def _in_python(path: Path) -> Iterator[Test]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    file = path.relative_to(FOLDER).as_posix()
    of_file = _marks_of_file(tree)
    about = ast.get_docstring(tree) or ""
    yield Test(file, "", frozenset(_ID.findall(about)), frozenset(_engines_of(of_file)))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not node.name.startswith("test_"):
                continue
            ids = _ID.findall(ast.get_docstring(node) or "")
            engines = _engines_of([*of_file, *node.decorator_list])
            yield Test(file, node.name, frozenset(ids), frozenset(engines))


def _in_c(path: Path) -> Iterator[Test]:
    """What its comments name. Only the conformance tests run against servers, and on both."""
    comments = re.findall(r"/\*.*?\*/", path.read_text(encoding="utf-8"), re.DOTALL)
    engines = ENGINES if path.parent.name == "conformance" else ()
    file = path.relative_to(FOLDER).as_posix()
    yield Test(file, "", frozenset(_ID.findall(" ".join(comments))), frozenset(engines))


def tests() -> list[Test]:
    """All tests, files by name, those of a file in its order."""
    found = [test for path in sorted(FOLDER.rglob("test_*.py")) for test in _in_python(path)]
    return found + [test for path in sorted(FOLDER.rglob("*.c")) for test in _in_c(path)]


def read(found: list[Test]) -> dict[str, list[Case]]:
    """The sections of tests/cases.toml, each case with its tests."""
    sections: dict[str, list[Case]] = {}
    texts = tomllib.loads((FOLDER / "cases.toml").read_text(encoding="utf-8"))
    for title, cases in texts.items():
        sections[title] = []
        for name, (grade, engines, rule, *gap) in cases.items():
            case = Case(name, grade, frozenset(engines.split()), rule, gap[0] if gap else None)
            case.tests = [test for test in found if name in test.ids]
            sections[title].append(case)
    return sections


def _named(case: Case) -> Iterator[str]:
    files: dict[str, list[str]] = {}
    for test in case.tests:
        files.setdefault(test.file, []).append(test.name)
    for file, names in files.items():
        shown = [name for name in names if name]
        if len(shown) > FEW:
            yield f"`{file}`: {len(shown)} tests"
        elif shown:
            yield f"`{file}`: " + ", ".join(f"`{name}`" for name in shown)
        else:
            yield f"`{file}`"
    if case.gap:
        yield f"*Not shown:* {case.gap}"


def render(sections: dict[str, list[Case]]) -> str:
    """The page."""
    lines = [_HEAD]
    for title, cases in sections.items():
        lines += [
            f"## {title}\n",
            "| id | | what holds | engines | tests |",
            "|---|---|---|---|---|",
        ]
        for case in cases:
            engines = ", ".join(shown for key, shown in ENGINES.items() if key in case.engines)
            words = (case.id, case.grade, case.rule, engines, "<br>".join(_named(case)))
            lines.append(f"| {' | '.join(words)} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(render(read(tests())), encoding="utf-8")
