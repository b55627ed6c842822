"""Saving files: full disks, killed processes, damaged files, and folders with foreign files."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

import zwang as zw
from tests.faults.processes import run
from zwang.atomic import write_file
from zwang.errors import LoadError, SimulationError, WriteError, ZwangError
from zwang.mechanism.samples import FURUTA, furuta
from zwang.recording.checksum import checksum

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="limits and signals of POSIX")
FORMATS = (".nc", ".zarr")


@pytest.fixture(scope="module")
def recording():
    return zw.simulate(furuta(**FURUTA), {"alpha": 0.1}, duration=0.2, step=0.001, worlds=3, progress=False)


def content(path: Path) -> dict[str, bytes]:
    """All bytes under a path."""
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return {str(p.relative_to(path)): p.read_bytes() for p in files}


@POSIX
def test_the_old_file_survives_a_full_disk(tmp_path: Path) -> None:
    """A limit on the size of files represents the full disk: writing fails in the same place. The process
    must end normally.
    """
    output = run(
        """
        import os, resource, signal, sys
        import zwang as zw
        from zwang.errors import WriteError
        from zwang.mechanism.samples import FURUTA, furuta

        os.chdir(sys.argv[1])
        os.environ["ZWANG_CACHE"] = "off"
        old = zw.simulate(furuta(**FURUTA), duration=0.02, progress=False)
        new = zw.simulate(furuta(**FURUTA), {"alpha": 0.1}, duration=2.0, worlds=4, progress=False)
        writers = {
            "run.nc": zw.save, "run.zarr": zw.save, "run.html": zw.save_html,
            "run.png": zw.plot, "run.svg": zw.plot,
        }
        for name, write in writers.items():
            write(old, name)
        paths = [os.path.join(folder, name) for folder, _, names in os.walk(".") for name in names]
        before = {path: open(path, "rb").read() for path in paths}
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
        for name, write in writers.items():
            try:
                write(new, name)
            except WriteError as error:
                assert name in str(error), error
            else:
                raise AssertionError(name)
        after = {p: open(p, "rb").read() for d, _, f in os.walk(".") for n in f for p in [os.path.join(d, n)]}
        assert after == before, set(after) ^ set(before)
        zw.open_run("run.nc"), zw.open_run("run.zarr")
        print("good")
    """,
        tmp_path,
    )
    assert output == "good\n"


@POSIX
def test_a_kill_while_saving_leaves_a_whole_recording(tmp_path: Path) -> None:
    """Of both formats; the process is the same, as its start takes as long as the kills."""
    run(
        """
        import os, random, signal, sys, time
        import numpy as np
        import zwang as zw
        from zwang.mechanism.samples import FURUTA, furuta

        starts = ({"alpha": 0.1}, {"alpha": 0.2})
        runs = [zw.simulate(furuta(**FURUTA), q, duration=0.5, worlds=20, progress=False) for q in starts]
        random.seed(1829)
        for path in sys.argv[1:]:
            zw.save(runs[0], path)
            zw.open_run(path)
            for kill in range(12):
                child = os.fork()
                if child == 0:
                    while True:
                        zw.save(runs[1], path)
                        zw.save(runs[0], path)
                time.sleep(random.uniform(0.01, 0.15))
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                found = zw.open_run(path)
                assert any(np.array_equal(found.q, run.q) for run in runs), (path, kill)
    """,
        *(tmp_path / f"run{suffix}" for suffix in FORMATS),
    )


def test_no_flipped_bit_changes_a_value_silently(recording, tmp_path: Path) -> None:
    """A damaged file may crash a library, so this runs in a process of its own."""
    flips = {tmp_path / "run.nc": 50, tmp_path / "run.zarr": 60}
    for path in flips:
        zw.save(recording, path)
    output = run(
        """
        import sys
        from pathlib import Path
        import numpy as np
        import zwang as zw
        from zwang.errors import LoadError

        rng = np.random.default_rng(1829)
        for name, flips in zip(sys.argv[1::2], sys.argv[2::2]):
            path = Path(name)
            true = zw.open_run(path)
            files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
            sizes = np.array([p.stat().st_size for p in files])
            refused = 0
            for flip in range(int(flips)):
                victim = files[rng.choice(len(files), p=sizes / sizes.sum())]
                good = victim.read_bytes()
                bad = bytearray(good)
                bad[rng.integers(len(bad))] ^= 1 << rng.integers(8)
                victim.write_bytes(bad)
                try:
                    found = zw.open_run(path)
                except LoadError as error:
                    refused += 1
                    assert path.name in str(error)
                else:
                    assert found.equals(true) and found.attrs.items() >= true.attrs.items(), (flip, victim)
                victim.write_bytes(good)
            print(refused)
    """,
        *(argument for pair in flips.items() for argument in pair),
    )
    for refused, count in zip(output.split(), flips.values(), strict=True):
        assert int(refused) > count // 4


def test_a_changed_value_raises_an_error_and_an_older_file_is_read(recording, tmp_path: Path) -> None:
    zw.save(recording, tmp_path / "run.nc")
    assert "checksum" not in zw.open_run(tmp_path / "run.nc").attrs
    changed = bytearray((tmp_path / "run.nc").read_bytes())
    place = changed.index(recording.q.values.tobytes())
    changed[place + 100] ^= 1
    (tmp_path / "run.nc").write_bytes(changed)
    with pytest.raises(LoadError, match=r"run\.nc.*checksum"):
        zw.open_run(tmp_path / "run.nc")
    recording.to_netcdf(tmp_path / "old.nc", engine="h5netcdf")
    assert zw.open_run(tmp_path / "old.nc").identical(recording)
    edited = zw.open_run(tmp_path / "old.nc").assign(q=recording.q + 1)
    zw.save(edited, tmp_path / "edited.nc")
    assert zw.open_run(tmp_path / "edited.nc").identical(edited)


@pytest.mark.parametrize("foreign", ["thesis.txt", "q/notes.txt", "0"])
def test_a_folder_with_foreign_files_is_not_changed(recording, foreign: str, tmp_path: Path) -> None:
    folder = tmp_path / "mine.zarr"
    zw.save(recording, folder)
    zw.save(recording, folder)  # overwriting a recording is allowed
    (folder / foreign).write_text("years of work")
    before = content(folder)
    with pytest.raises(SimulationError, match=foreign):
        zw.save(recording, folder)
    assert content(folder) == before
    (tmp_path / "other.zarr").mkdir()
    (tmp_path / "other.zarr" / "thesis.txt").write_text("years of work")
    with pytest.raises(SimulationError, match=r"thesis\.txt"):
        zw.save(recording, tmp_path / "other.zarr")


def test_a_failed_save_leaves_no_files(recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run.nc").write_text("old")

    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    for name in ("run.nc", "run.zarr"):
        with pytest.raises(WriteError, match=rf"{name[:3]}.*Input/output error"):
            zw.save(recording, tmp_path / name)
    assert content(tmp_path) == {"run.nc": b"old"}
    for place in ("no/such/run.nc", "no/such/run.zarr"):
        with pytest.raises(ZwangError, match="no/such"):
            zw.save(recording, tmp_path / place)


@POSIX
def test_links_modes_and_pipes_are_respected(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o640
    write_file(os.devnull, b"nowhere")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    fresh = tmp_path / "fresh"
    write_file(fresh, b"")
    (tmp_path / "usual").touch()
    assert fresh.stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_checksums_detect_every_change(recording) -> None:
    changes = [
        recording.assign(q=recording.q * np.nextafter(1, 2)),
        recording.assign_attrs(step=0.002),
        recording.rename(q="qq"),
        recording.assign(q=recording.q.assign_attrs(units="m")),
        recording.assign(q=recording.q.astype("float32")),
        recording.transpose("time", "world", ...),
        recording.assign_coords(coordinate=["alpha", "theta"]),
    ]
    assert len({checksum(x) for x in (recording, *changes)}) == len(changes) + 1
    assert checksum(recording) == checksum(recording.assign_attrs(checksum="any"))
