"""`zwang view` and `--html`: the command line writes and serves the same pages as the library."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request

import pytest

import zwang as zw
from tests.viewer.scenes import array, scene_in
from zwang.cli import main
from zwang.mechanism.samples import double_pendulum, four_bar


def run(line: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(line.split())
    return int(end.value.code or 0)


def test_simulate_writes_a_page_of_the_motion(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("simulate furuta --duration 0.5 --worlds 3 --html run.html --out run.nc") == 0
    scene = scene_in((tmp_path / "run.html").read_text())
    assert len(scene["worlds"]) == 3 and array(scene, scene["run"]["times"])[-1] == pytest.approx(0.5)
    assert run("view run.nc --worlds 2 --trace pendulum --html two.html") == 0
    scene = scene_in((tmp_path / "two.html").read_text())
    assert len(scene["worlds"]) == 2 and scene["traces"] == ["pendulum"]


def test_view_shows_a_model_from_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.json").write_text(double_pendulum().to_json())
    assert run("view arm.json --html arm.html") == 0
    assert scene_in((tmp_path / "arm.html").read_text())["run"] is None


def test_an_unknown_trace_is_one_message(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("view furuta --trace nose --html a.html") == 1
    assert "nose" in capsys.readouterr().err and not (tmp_path / "a.html").exists()


def test_view_serves_until_it_is_interrupted():
    pytest.importorskip("viser")
    code = "from zwang.cli import main; main(['view', 'furuta', '--no-browser'])"
    with subprocess.Popen([sys.executable, "-u", "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with urllib.request.urlopen(url, timeout=20) as response:
            assert response.status == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130


def test_a_page_of_a_simulation_has_its_forces(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = "simulate four_bar --duration 0.05 --step 0.01 --no-compiled"
    for more, there in (("", True), (" --no-forces", False)):
        assert run(f"{line} --html run.html{more}") == 0
        forces = scene_in((tmp_path / "run.html").read_text())["run"]["forces"]
        assert (forces["kinds"] if forces else []) == (["constraint"] if there else [])


def test_a_recording_without_forces_is_shown_with_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    zw.save(zw.simulate(four_bar(), duration=0.05, step=0.01, compiled=False), "run.nc")
    for more, there in (("", True), (" --no-forces", False)):
        assert run(f"view run.nc --html run.html{more}") == 0
        assert bool(scene_in((tmp_path / "run.html").read_text())["run"]["forces"]) is there
