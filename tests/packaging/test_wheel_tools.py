"""The programs that repair and check wheels see what is wrong, in small made-up wheels."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.loading import load

ROOT = Path(__file__).parents[2]


check_wheel = load(ROOT / "packaging" / "check_wheel.py")
repair_wheel = load(ROOT / "packaging" / "repair_wheel.py")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """An unpacked wheel with good licences and, in place of a library, a text."""
    information = tmp_path / "cwist_jq-0.1.0.dist-info"
    for name in ("LICENSE", "bundled/libx/copyright"):
        path = information / "licenses" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("free")
    lines = ["License-File: LICENSE", "License-File: bundled/libx/copyright", "", "About"]
    (information / "METADATA").write_text("Metadata-Version: 2.4\n" + "\n".join(lines))
    (tmp_path / "cwist_jq/lib").mkdir(parents=True)
    (tmp_path / "cwist_jq.libs").mkdir()
    (tmp_path / "cwist_jq.libs/libx-0123abcd.so.1").write_text("no library")
    return tmp_path


def compiled(path: Path, source: str, *options: str) -> None:
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(path), *options]
    subprocess.run(command, input=source, text=True, check=True)


# ---- check_wheel ----


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("cwist_jq-0.1.0-cp39-abi3-manylinux_2_34_x86_64.whl", True),
        ("cwist_jq-0.1.0-cp39-abi3-musllinux_1_2_aarch64.whl", True),
        ("cwist_jq-0.1.0-cp39-abi3-macosx_11_0_arm64.whl", True),
        ("cwist_jq-0.1.0-cp39-abi3-win_amd64.whl", True),
        ("cwist_jq-0.1.0-cp314-cp314t-manylinux_2_28_x86_64.whl", True),
        ("cwist_jq-0.1.0-cp39-abi3-linux_x86_64.whl", False),
        ("cwist_jq-0.1.0-cp311-cp311-manylinux_2_34_x86_64.whl", False),
        ("cwist_jq-0.1.0-py3-none-any.whl", False),
    ],
)
def test_the_tag(name: str, right: bool) -> None:  # noqa: FBT001
    """K02: a wheel that the repair tool took for pure is refused."""
    assert bool(check_wheel.TAG.fullmatch(name)) is right


def test_good_licences(tree: Path) -> None:
    assert list(check_wheel.license_problems(tree)) == []


def test_licences_that_do_not_agree(tree: Path) -> None:
    licenses = tree / "cwist_jq-0.1.0.dist-info/licenses"
    (licenses / "LICENSE").rename(licenses / "COPYING")
    assert list(check_wheel.license_problems(tree)) == [
        "the licence COPYING is not named",
        "the licence LICENSE is named but not inside",
    ]


def test_a_bundled_library_without_a_licence(tree: Path) -> None:
    information = tree / "cwist_jq-0.1.0.dist-info"
    (information / "licenses/bundled/libx/copyright").unlink()
    (information / "METADATA").write_text("License-File: LICENSE\n\n")
    said = list(check_wheel.license_problems(tree))
    assert said == ["no licence of a bundled library is inside"]


def test_libraries(tree: Path) -> None:
    """K01, K02: an undefined symbol, a library of the system, a public symbol too many."""
    names = promised()
    source = "int redisCommand(void); int missing(void);\n" + "".join(
        f"int {name}(void) {{ return redisCommand() + missing(); }}\n" for name in names
    )
    compiled(tree / "cwist_jq/lib/libcwist_jq.so.0", source, "-lhiredis")
    extension = "int PyInit__native(void) { return 0; } int other(void) { return 0; }"
    compiled(tree / "cwist_jq/_native.abi3.so", extension)
    said = "\n".join(check_wheel.library_problems(tree))
    assert "cwist_jq/lib/libcwist_jq.so.0: undefined symbol: missing" in said
    assert "cwist_jq/lib/libcwist_jq.so.0 takes libhiredis.so" in said
    assert "_native.abi3.so exports more than PyInit__native" in said
    assert "exports.txt" not in said


def test_an_export_too_many(tree: Path) -> None:
    names = [*promised(), "cwist_jq__private"]
    source = "".join(f"int {name}(void) {{ return 0; }}\n" for name in names)
    compiled(tree / "cwist_jq/lib/libcwist_jq.so.0", source)
    # The interpreter brings its symbols along: they are not missing.
    extension = """
        extern int _Py_NoneStruct, PyExc_OSError;
        int *PyInit__native(void) { return _Py_NoneStruct ? &PyExc_OSError : 0; }
    """
    compiled(tree / "cwist_jq/_native.abi3.so", extension)
    (said,) = check_wheel.library_problems(tree)
    assert "exported but not in exports.txt: cwist_jq__private" in said


def test_the_place_of_the_build(tree: Path) -> None:
    assert list(check_wheel.place_problems(tree)) == []
    (tree / "cwist_jq/lib/cwist-jq.pc").write_text(f"prefix={ROOT}/build\n")
    options = ("-Wl,-rpath,$ORIGIN/lib:/opt/python/lib",)
    compiled(tree / "cwist_jq/_native.abi3.so", "int PyInit__native;", *options)
    assert list(check_wheel.place_problems(tree)) == [
        "cwist_jq/_native.abi3.so searches /opt/python/lib",
        f"cwist_jq/lib/cwist-jq.pc names {ROOT}/",
    ]


def promised() -> list[str]:
    """The names in exports.txt."""
    lines = (ROOT / "csrc/exports.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_a_package_that_cannot_be_imported(tree: Path) -> None:
    (tree / "cwist_jq/__init__.py").write_text("raise ImportError('undefined symbol: x')\n")
    (said,) = check_wheel.import_problems(tree)
    assert "undefined symbol: x" in said


# ---- repair_wheel ----


def test_each_system_has_its_tool() -> None:
    """K04: on macOS the architecture of everything inside must be that of the tag."""
    wheel = Path("cwist_jq-0.1.0-cp39-abi3-macosx_11_0_arm64.whl")
    command = repair_wheel.tool("darwin", wheel, [])
    assert command == ["delocate-wheel", "--require-archs", "arm64", str(wheel)]
    with pytest.raises(repair_wheel.RepairError, match="not for macOS"):
        repair_wheel.tool("darwin", Path("cwist_jq-0.1.0-py3-none-any.whl"), [])
    places = [Path("/installed/wheel-windows/lib")]
    command = repair_wheel.tool("win32", Path("x.whl"), places)
    assert command[1:4] == ["-m", "delvewheel", "repair"]
    assert command[command.index("--add-path") + 1] == "/installed/wheel-windows/bin"
    assert "auditwheel" in repair_wheel.tool("linux", Path("x.whl"), [])


def test_bundled_libraries_get_their_names_back(tree: Path) -> None:
    (tree / "cwist_jq.libs/libcrypto-aa01e614.so.3").write_text("")
    (tree / "cwist_jq.libs/hiredis-7ea2b1f0c9d84e66.dll").write_text("")
    assert repair_wheel.bundled(tree) == ["hiredis.dll", "libcrypto.so.3", "libx.so.1"]


def test_licences_of_vcpkg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "installed"
    module = "libdir=${pcfiledir}/../../lib\nName: x\nDescription: x\nVersion: 1\n"
    for path, text in {
        "wheel-linux/lib/pkgconfig/hiredis.pc": module,
        "wheel-linux/share/hiredis/copyright": "free",
        "vcpkg/info/hiredis_1.3.0_wheel-linux.list": "wheel-linux/lib/libhiredis.so.1\n",
    }.items():
        (installed / path).parent.mkdir(parents=True, exist_ok=True)
        (installed / path).write_text(text)
    monkeypatch.setenv("PKG_CONFIG_LIBDIR", str(installed / "wheel-linux/lib/pkgconfig"))
    monkeypatch.setenv("PKG_CONFIG_PATH", "")
    name, path = repair_wheel.license_of("libhiredis.so.1")
    assert (name, path.read_text()) == ("hiredis", "free")


@pytest.mark.skipif(not Path("/usr/bin/dpkg-query").exists(), reason="not on Debian")
def test_licences_of_debian(tree: Path) -> None:
    (tree / "cwist_jq.libs/libx-0123abcd.so.1").unlink()
    real = Path(
        subprocess.run(
            ["gcc", "-print-file-name=libnats.so"], capture_output=True, text=True, check=True
        ).stdout.strip()
    ).resolve()
    (tree / "cwist_jq.libs" / real.name.replace(".so", "-2489369a.so")).write_text("")
    repair_wheel.add_licenses(tree)
    assert list(check_wheel.license_problems(tree)) == []
    licenses = tree / "cwist_jq-0.1.0.dist-info/licenses/bundled"
    assert any("nats" in path.parent.name for path in licenses.glob("*/copyright"))
    # Debian's file only points to the text of this licence.
    assert "Apache License" in (licenses / "common-licenses/Apache-2.0").read_text()


def test_a_library_that_no_package_holds() -> None:
    with pytest.raises(repair_wheel.RepairError, match=r"no package .* holds libnowhere\.so\.1"):
        repair_wheel.license_of("libnowhere.so.1")


# ---- lifecycle ----


def test_the_life_cycle_wants_every_engine() -> None:
    program = str(ROOT / "tests/packaging/lifecycle.py")
    command = [sys.executable, program, "--engines", "redis,nats", "redis://127.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "lifecycle: no URL of nats\n"


def test_the_life_cycle_fails_without_a_server() -> None:
    program = str(ROOT / "tests/packaging/lifecycle.py")
    command = [sys.executable, program, "redis://127.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("lifecycle: redis: ")
