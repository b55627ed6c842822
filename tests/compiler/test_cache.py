"""The disk cache of object code: no use of code that differs, is damaged, or that other users could have
written.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.compiler.elementary_cases import program_of
from zwang.compiler.ir.program import Block, Instruction, Kind, Program
from zwang.compiler.runtime import cache, kernel
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.compiler.runtime.processor import host
from zwang.scalar.arrays import Entries

PROGRAM = program_of("sin", "exp")
X = np.linspace(-1, 1, 20)[:, None]
POSIX = pytest.mark.skipif(os.name == "nt", reason="owners and modes of POSIX")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private folder as the cache."""
    monkeypatch.setenv(cache.SETTING, str(tmp_path / "kept"))
    return tmp_path / "kept"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the objects that were compiled, not loaded."""
    names: list[str] = []
    one, several = kernel.object_code, kernel.object_codes

    def object_code(text: str) -> bytes:
        names.append("entry points")
        return one(text)

    def object_codes(texts: Sequence[str]) -> list[bytes]:
        names.append("body")
        return several(texts)

    monkeypatch.setattr(kernel, "object_code", object_code)
    monkeypatch.setattr(kernel, "object_codes", object_codes)
    kernel._entry_points.cache_clear()
    return names


def results(program: Program = PROGRAM, **settings: object) -> np.ndarray:
    kernel._entry_points.cache_clear()
    return np.concatenate(
        [CompiledFunction(program, **settings)(X), CompiledFunction(program, **settings)(X[0])[None]]
    )


def test_code_is_compiled_once_and_then_loaded(place: Path, made: list[str]) -> None:
    first = results()
    assert sorted(made) == ["body", "body", "entry points", "entry points"]  # for one world and for many
    assert len(list(place.iterdir())) == 4
    made.clear()
    assert np.array_equal(results(), first) and not made


def test_the_key_depends_on_program_settings_and_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def key(program: Program = PROGRAM, *settings: object) -> str:
        return cache.key(program, *(settings or ("float64", 8, host().identity)))

    body = PROGRAM.body
    first, *others = body.instructions
    variants = [
        key(),
        key(PROGRAM, "float32", 8, host().identity),
        key(PROGRAM, "float64", 4, host().identity),
        key(PROGRAM, "float64", 8, host().identity + " newer"),
        key(program_of("exp", "sin")),
        key(program_of("sin", "exp", "log")),
        key(Program(PROGRAM.inputs, PROGRAM.outputs, Block((), (first, *others), (2, 1)), PROGRAM.kinds, {})),
    ]
    constants = [0.1, np.nextafter(0.1, 1), float("nan"), -0.0, 0.0]
    for value in constants:
        instructions = (Instruction("const", (), (0,), value),)
        variants.append(key(Program((), PROGRAM.outputs, Block((), instructions, (0, 0)), {0: "real"}, {})))
    for entries in [(0.0, 1.0), (-0.0, 1.0), (0, 1), (0.0, 1.0, 2.0)]:
        read = Instruction("index", (), (0,), 0), Instruction("table", (0,), (1,), Entries(entries))
        kinds: dict[int, Kind] = {0: "index", 1: "real"}
        variants.append(key(Program((), PROGRAM.outputs, Block((), read, (1, 1)), kinds, {})))
    monkeypatch.setattr(cache, "compiler_digest", lambda: b"another compiler")
    variants.append(key())
    assert len(set(variants)) == len(variants)


def test_names_are_not_in_the_key() -> None:
    renamed = [type(port)("another " + port.name, port.size) for port in PROGRAM.inputs]
    other = Program(tuple(renamed), PROGRAM.outputs, PROGRAM.body, PROGRAM.kinds, PROGRAM.lengths)
    assert cache.key(other) == cache.key(PROGRAM)


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "foreign"])
def test_damaged_files_are_compiled_again(place: Path, made: list[str], damage: str) -> None:
    first = results()
    for path in place.iterdir():
        text = path.read_bytes()
        middle = len(text) // 2
        path.write_bytes(
            {
                "cut": text[:-20],
                "flipped": text[:middle] + bytes([text[middle] ^ 1]) + text[middle + 1 :],
                "empty": b"",
                "foreign": b"\x7fELF" + text,
            }[damage]
        )
    made.clear()
    assert np.array_equal(results(), first) and len(made) == 4
    made.clear()
    assert np.array_equal(results(), first) and not made


@POSIX
@pytest.mark.parametrize("what", ["folder", "file"])
def test_files_that_others_can_write_are_not_loaded(place: Path, made: list[str], what: str) -> None:
    first = results()
    if what == "folder":
        place.chmod(0o777)
    else:
        for path in place.iterdir():
            path.chmod(0o666)
    made.clear()
    assert np.array_equal(results(), first) and len(made) == 4


@POSIX
def test_every_folder_above_has_to_be_private(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    safe_above = cache._is_private(tmp_path)
    assert cache._is_private(inner) == safe_above
    (tmp_path / "a").chmod(0o777)
    assert not cache._is_private(inner)
    (tmp_path / "a").chmod(0o1777)  # as /tmp: others may add, but not swap
    assert cache._is_private(inner) == safe_above
    (tmp_path / "link").symlink_to(inner)
    inner.chmod(0o770)
    assert not cache._is_private(tmp_path / "link")


@pytest.mark.parametrize("setting", ["off", "OFF", "0"])
def test_the_environment_variable_switches_the_cache_off(
    monkeypatch: pytest.MonkeyPatch, place: Path, made: list[str], setting: str
) -> None:
    monkeypatch.setenv(cache.SETTING, setting)
    results()
    results()
    assert len(made) == 8 and not place.exists()


def test_the_argument_switches_the_cache_off(place: Path, made: list[str]) -> None:
    results(cache=False)
    assert not place.exists()


def test_an_impossible_folder_is_not_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(cache.SETTING, str(tmp_path / "file" / "folder"))
    assert np.isfinite(results()).all()


def test_the_least_recently_used_files_are_deleted(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LIMIT", 10_000)
    keys = [hashlib.sha256(bytes([n])).hexdigest() for n in range(20)]
    place.mkdir(0o700)
    abandoned = place / f"{keys[0]}.abcd_123.new"  # by a process that was killed while it wrote
    abandoned.write_bytes(bytes(5000))
    os.utime(abandoned, (0, 0))
    for n, key in enumerate(keys):
        cache.fetch(key, lambda: bytes(1000))
        if (place / f"{key}.o").exists():
            os.utime(place / f"{key}.o", (n, n))
    sizes = [path.stat().st_size for path in place.iterdir()]
    assert sum(sizes) <= 10_000 + 1200
    assert (place / f"{keys[19]}.o").exists() and not (place / f"{keys[0]}.o").exists()
    assert not abandoned.exists()


def test_small_files_are_measured_together(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder stays near its limit, and is read as often as parts of it have been written."""
    measured: list[Path] = []

    def discard(location: Path, discard: Callable[[Path], None] = cache._discard_oldest) -> None:
        measured.append(location)
        discard(location)

    monkeypatch.setattr(cache, "LIMIT", 50_000)
    monkeypatch.setattr(cache, "_discard_oldest", discard)
    for n in range(1500):
        cache.fetch(hashlib.sha256(bytes([n % 256, n // 256])).hexdigest(), lambda: b"")
        cache.fetch(hashlib.sha256(bytes([n % 256, n // 256, 1])).hexdigest(), lambda: bytes(20))
    assert 100 < len(measured) < 700
    assert sum(path.stat().st_size for path in place.iterdir()) < 1.2 * 50_000


def test_other_files_in_the_folder_are_neither_counted_nor_deleted(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "LIMIT", 10_000)
    keys = [hashlib.sha256(bytes([n])).hexdigest() for n in range(3)]
    others = ["measurements.h5", "new-thoughts", "program.o", f"{keys[0]}.txt", f"{keys[0]}.o.old"]
    place.mkdir(0o700)
    for name in others:
        (place / name).write_bytes(bytes(20_000))
        os.utime(place / name, (0, 0))
    (place / "folder").mkdir()
    for key in keys:
        cache.fetch(key, lambda: bytes(1000))
    assert {path.name for path in place.iterdir()} == {*others, "folder", *(f"{key}.o" for key in keys)}


def test_default_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(cache.SETTING, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "zwang"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, by its specification
    assert cache.folder() == Path.home() / ".cache" / "zwang"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache.folder() == Path.home() / "Library" / "Caches" / "zwang"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert cache.folder() == tmp_path / "zwang" / "cache"


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")  # as for an unknown user without HOME

    monkeypatch.delenv(cache.SETTING, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    for system in ("linux", "darwin"):
        monkeypatch.setattr(sys, "platform", system)
        assert cache.folder() is None


def test_two_processes_at_once(place: Path) -> None:
    script = (
        "from tests.compiler.elementary_cases import program_of\n"
        "from zwang.compiler.runtime.compiled_function import CompiledFunction\n"
        "print(CompiledFunction(program_of('sin', 'exp'))([[0.5], [1.0]]).tobytes().hex())\n"
    )
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    runs = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(3)
    ]
    assert len({run.communicate()[0] for run in runs}) == 1
    assert all(run.returncode == 0 for run in runs)


def test_an_object_of_another_program_under_this_key_is_rejected(place: Path, made: list[str]) -> None:
    """The file is complete and was written by the same user; only the key in its header identifies the
    program.
    """
    first = results()
    mine = {path.name for path in place.iterdir()}
    other = results(program_of("exp", "sin"))
    theirs = sorted({path.name for path in place.iterdir()} - mine)
    assert not np.array_equal(first, other) and len(theirs) == 2
    foreign = {(place / name).stat().st_size: (place / name).read_bytes() for name in theirs}
    for path in [place / name for name in mine]:
        path.write_bytes(foreign[min(foreign, key=lambda size: abs(size - path.stat().st_size))])
    made.clear()
    assert np.array_equal(results(), first) and len(made) == 4


@POSIX
@pytest.mark.parametrize("what", ["link", "pipe"])
def test_links_and_pipes_are_not_read(place: Path, made: list[str], what: str) -> None:
    first = results()
    for path in list(place.iterdir()):
        path.rename(place.parent / path.name)
        path.symlink_to(place.parent / path.name) if what == "link" else os.mkfifo(path)
    made.clear()
    assert np.array_equal(results(), first) and len(made) == 4
