"""The command line: what it prints and writes, and that every error is one message with exit status 1."""

from __future__ import annotations

import inspect
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.cli import app, main
from zwang.integrator.adaptive_step import METHODS
from zwang.mechanism.samples import FURUTA, SAMPLES, furuta
from zwang.simulation.step import STEPPERS
from zwang.viewer.plot_series import KINDS


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    """Runs a command in an empty folder; gives (status, output, errors)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(arguments)
        captured = capsys.readouterr()
        return int(end.value.code or 0), captured.out, captured.err

    return run


COMMANDS = [
    "info", "check", "convert", "export", "simulate", "plot", "view", "equations", "linearize", "ik", "bench",
    "demo",
]  # fmt: skip


def test_energies_that_overflow_are_told_without_warnings_of_numpy(call):
    start = "simulate furuta --v0 theta=1e200 --duration 0.01 --out a.nc --plot a.png"
    for arguments in (start, f"{start} --worlds 2", "plot a.nc --kind energy", "plot a.nc --kind drift"):
        status, out, err = call(*arguments.split())
        assert status == 0 and not re.search(r"\b(inf|nan)\b", out)
        assert "too large for a number" in out or "wrote" in out
        assert not re.search("encountered|divide", err)


def test_the_change_of_energy_is_relative_to_what_the_motion_exchanges(call, tmp_path):
    start = "simulate double_pendulum --q0 shoulder=1 --duration 0.5 --step 0.02 --out a.nc"
    status, out, _ = call(*start.split())
    run = zw.open_run(tmp_path / "a.nc").isel(world=0)
    change = abs(run.energy - run.energy[0]).max().item()
    exchanged = max(run.kinetic_energy.max().item(), np.ptp(run.potential_energy.values))
    told = " ".join(out.split())
    assert status == 0 and f"changes by at most {change:.3g} J" in told
    assert f"at most {change / exchanged:.2g} of the largest kinetic energy or range of potential" in told


NEED_VALUES = {
    "simulate": [], "linearize": [], "export": ["out.wasm", "--function", "momentum"],
    "convert": ["out.xml"], "bench": ["--worlds", "4"], "view": ["--html", "out.html"],
    "ik": ["--frame", "b", "--position", "0", "0", "1"], "identify": ["data.csv"],
}  # fmt: skip
"""The commands that need values of symbols, with their other arguments."""


@pytest.mark.parametrize("command", NEED_VALUES)
def test_a_symbol_without_a_value_is_given_by_an_option(call, tmp_path, command):
    """Also one whose name has a space; the command line of the remedy is accepted."""
    rest = NEED_VALUES[command]
    (tmp_path / "data.csv").write_text("time,q_j,tau_j_dot\n0,0,0\n0.1,0.1,0\n")
    for name in ("m_1", "first mass"):
        body = zw.Body("b", zw.Revolute("j", (0, 1, 0)), mass=sp.Symbol(name, positive=True), com=(0.1, 0, 0))
        (tmp_path / "model.json").write_text(zw.Mechanism("p", [body]).to_json())
        status, _, err = call(command, "model.json", *rest)
        assert status == 1 and re.search("has no value|without values", err)
        assert not re.search(r"params=|subs\(", err)
        remedy = re.search(r"give (--param .*=\.\.\.)", err)
        assert remedy is not None
        given = shlex.split(remedy[1].replace("...", "2"))
        assert given == ["--param", f"{name}=2"]
        _, bound, _ = app.parse_args([command, "model.json", *rest, *given], exit_on_error=False)
        assert bound.kwargs.get("param", bound.arguments.get("param")) == [f"{name}=2"]


def test_all_symbols_of_a_model_are_given_values_by_options(call, tmp_path):
    """As the remedy has them; the file has the numbers."""
    mass, length = sp.Symbol("m", positive=True), sp.Symbol("the 'l'", positive=True)
    body = zw.Body("b", zw.Revolute("j", (0, 1, 0)), mass=mass, com=(length, 0, 0), inertia=(1, 1, 1))
    (tmp_path / "model.json").write_text(zw.Mechanism("p", [body]).to_json())
    _, _, err = call("convert", "model.json", "m.xml")
    remedy = re.search(r"give (--param .*=\.\.\.)", " ".join(err.split()))
    assert remedy is not None
    given = [text.replace("...", "2") for text in shlex.split(remedy[1])]
    assert given == ["--param", "m=2", "--param", "the 'l'=2"]
    assert call("convert", "model.json", "m.xml", *given)[0] == 0
    assert zw.mass_matrix(zw.load(tmp_path / "m.xml"), [0.0])[0, 0] == pytest.approx(1 + 2 * 2**2)
    call(*"simulate furuta --duration 0.01 --out a.nc".split())
    status, _, err = call(*"view a.nc --html a.html --param m=1".split())
    assert status == 1 and "leave out --param m=1" in err


def examples_in(text: str) -> list[list[str]]:
    """The command lines that a help text shows, without the word zwang."""
    return [shlex.split(line)[1:] for line in re.findall(r"^zwang .+?$", text, re.MULTILINE)]


def test_help_shows_every_command_and_examples_that_are_accepted(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    status, out, _ = call("--help")
    assert status == 0 and all(re.search(rf"^│ {command} ", out, re.MULTILINE) for command in COMMANDS)
    assert ["info", "furuta"] in examples_in(out)
    for arguments in examples_in(out):
        app.parse_args(arguments, exit_on_error=False, print_error=False)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_examples_that_are_accepted(call, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    status, out, _ = call(command, "--help")
    assert status == 0 and "Examples" in out and examples_in(out)
    for arguments in examples_in(out):
        assert arguments[0] == command
        function, _, _ = app.parse_args(arguments, exit_on_error=False, print_error=False)
        assert function is app[command].default_command


@pytest.mark.parametrize(
    ("command", "names"),
    [("simulate", (*STEPPERS, *METHODS)), ("export", STEPPERS), ("identify", STEPPERS)],
)
def test_help_names_the_integrators_that_are_accepted(command, names):
    parameters = app[command].assemble_argument_collection()
    (text,) = (a.parameter.help for a in parameters if "--integrator" in a.names)
    assert set(names) == set(re.findall(r"\w+", text)) & {*STEPPERS, *METHODS}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_written_in_sentences(command):
    """Each argument and option has a help text that begins with a capital or a name and ends with a full
    stop.
    """
    arguments = app[command].assemble_argument_collection()
    texts = [inspect.getdoc(app[command].default_command) or "", *(a.parameter.help or "" for a in arguments)]
    for text in texts:
        assert re.fullmatch(r"[A-Z].*\.", text, re.DOTALL), f"zwang {command}: {text!r}"


def test_simulate_writes_the_recording_and_the_picture(call, tmp_path):
    arguments = "simulate furuta --duration 0.1 --worlds 4 --q0 alpha=0.2 --control tau=0.01"
    arguments += " --out run.nc --plot run.png"
    status, out, _ = call(*arguments.split())
    assert status == 0 and "4 worlds" in out and "wrote run.nc" in out
    run = zw.open_run(tmp_path / "run.nc")
    assert run.sizes["world"] == 4 and (run.control == 0.01).all()
    starts = run.q.sel(coordinate="alpha").values[:, 0]
    assert np.ptp(starts) > 0.01 and abs(starts.mean() - 0.2) < 0.3
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_simulate_starts_one_world_at_the_given_state(call, tmp_path):
    arguments = "simulate double_pendulum --duration 0.1 --q0 elbow=0.3 --v0 shoulder=-1"
    arguments += " --integrator rk4 --out a.zarr"
    assert call(*arguments.split())[0] == 0
    run = zw.open_run(tmp_path / "a.zarr")
    np.testing.assert_allclose(run.q.values[0, 0], [0, 0.3])
    np.testing.assert_allclose(run.v.values[0, 0], [-1, 0])
    assert run.attrs["integrator"] == "rk4"


HOME = """<mujoco><worldbody><body><joint name="j" axis="0 1 0"/><geom size=".1" pos="0 0 -.3"/></body>
</worldbody><actuator><general name="g" joint="j" dyntype="filter" dynprm="1" gainprm="2"/>
<motor name="m" joint="j"/></actuator>
<keyframe><key name="up" qpos="3" qvel="0.5" act="0.7" ctrl="0.4 -1"/></keyframe></mujoco>"""


def test_a_keyframe_gives_the_whole_initial_state(call, tmp_path):
    (tmp_path / "arm.xml").write_text(HOME)
    assert call(*"simulate arm.xml --duration 0.1 --keyframe up --out a.nc".split())[0] == 0
    run = zw.open_run(tmp_path / "a.nc")
    start = [run[name].values[0, 0] for name in ("q", "v", "activation", "control")]
    assert [x.tolist() for x in start] == [[3], [0.5], [0.7], [0.4, -1]]
    status, out, err = call(*"linearize arm.xml --keyframe up --control m=1 --control g=0.7".split())
    linear = zw.linearize(zw.load(tmp_path / "arm.xml"), "up", control=[0.7, 1])
    poles = [complex(x) for x in out.split("poles:")[1].replace("\n", "").split(",")]
    assert status == 0 and "changes along the motion" in " ".join(err.split())
    eigenvalues = np.linalg.eigvals(linear.A).astype(complex)
    np.testing.assert_allclose(np.sort_complex(poles), np.sort_complex(eigenvalues), rtol=1e-5)
    for wrong, named in (("--keyframe down", "up"), ("--keyframe up --q0 j=1", "leave out --q0")):
        status, _, err = call(*f"simulate arm.xml {wrong}".split())
        assert status == 1 and named in err
    status, _, err = call(*"linearize arm.xml --keyframe up --v0 j_dot=1".split())
    assert status == 1 and "leave out --v0" in err


def test_the_equilibrium_is_printed_by_coordinates_and_the_control_by_inputs(call, tmp_path):
    """The torque holds the weight of an inverted pendulum: u = -m g l sin q."""
    rod = zw.Body(
        "rod", zw.Revolute("j", axis=(0, 1, 0)), mass=2, com=(0, 0, 0.2), inertia=(0.05, 0.05, 0.01)
    )
    m = zw.Mechanism("arm", [rod], forces=[zw.Motor("m", "j")])
    (tmp_path / "arm.json").write_text(m.to_json())
    status, out, _ = call(*"linearize arm.json --trim --q0 j=3".split())
    q, u = (float(out.split(start)[1].split()[0]) for start in ("equilibrium: j = ", "control: m = "))
    assert status == 0 and abs(q - 3) < 0.2
    assert u == pytest.approx(-2 * 9.81 * 0.2 * np.sin(q), rel=1e-4)


def test_loops_are_closed_with_the_given_values_held(call, tmp_path):
    given = "--q0 drive=0.3 --v0 drive=2 --duration 0.01 --out a.nc --worlds 2"
    assert call(*"simulate four_bar --spread 0".split(), *given.split())[0] == 0
    run = zw.derived_quantities(zw.open_run(tmp_path / "a.nc"), "violations")
    drive = run.q.sel(coordinate="drive").values[:, 0], run.v.sel(speed="drive").values[:, 0]
    np.testing.assert_allclose(drive, [[0.3, 0.3], [2, 2]], atol=1e-12)
    assert np.abs(run.constraint_violation.values[:, 0]).max() < 1e-9
    (tmp_path / "a.nc").unlink()
    rounded = "--q0 drive=1.0 --q0 first=-0.5591 --q0 second=1.4277 --duration 0.01".split()
    assert call("simulate", "four_bar", *rounded)[0] == 0
    given = given.replace("drive=0.3", "drive=0.3 --q0 first=3")
    status, _, err = call(*"simulate four_bar --spread 0".split(), *given.split())
    assert status == 1 and "'loop'" in err and not (tmp_path / "a.nc").exists()


def test_recordings_are_drawn_by_kind(call, tmp_path):
    made = call(*"simulate four_bar --duration 0.05 --out a.nc --plot z.png --kind zwang".split())
    assert made[0] == 0 and (tmp_path / "z.png").read_bytes().startswith(b"\x89PNG")
    for kind in ("overview", *KINDS):
        status, out, _ = call("plot", "a.nc", "--kind", kind)
        assert status == 0 and f"wrote a_{kind}.png" in out and (tmp_path / f"a_{kind}.png").exists()
    status, _, err = call("plot", "a.nc", "--kind", "phase", "--name", "knee")
    assert status == 1 and "'drive'" in err
    assert call("plot", "a.nc", "--kind", "phase", "--name", "drive", "--out", "d.svg")[0] == 0


def test_forces_without_a_point_of_application_are_recorded_and_drawn(call, tmp_path):
    body = zw.Body("slider", zw.Prismatic("y", axis=(0, 0, 1)), mass=2)
    drive = zw.Holonomic("drive", sp.Symbol("y") - sp.sin(sp.Symbol("t")) ** 2)
    (tmp_path / "m.json").write_text(zw.Mechanism("m", [body], constraints=[drive]).to_json())
    simulated = "simulate m.json --duration 0.02"
    assert call(*f"{simulated} --out a.nc --plot b.png --kind forces".split())[0] == 0
    assert call(*"plot a.nc --kind forces --name y --out c.png".split())[0] == 0
    assert (tmp_path / "b.png").exists() and (tmp_path / "c.png").exists()
    assert call(*f"{simulated} --forces --out d.nc".split())[0] == 0
    force = zw.open_run(tmp_path / "d.nc")["generalised_constraint_force"].values
    assert force[0, 0, 0] == pytest.approx(2 * (9.81 + 2), rel=1e-6)


@pytest.mark.parametrize("sample", SAMPLES)
def test_info_names_every_joint(call, sample):
    status, out, _ = call("info", sample)
    assert status == 0
    for joint in SAMPLES[sample]().joints:
        assert joint.name in out


def test_info_and_check_read_files(call, tmp_path):
    (tmp_path / "arm.json").write_text(furuta().to_json())
    assert "symbols B_p" in call("info", "arm.json")[1]
    assert call("check", "furuta")[0] == 0


def test_check_fails_only_for_notes_that_affect_the_motion(call, tmp_path):
    text = (
        '<robot name="arm"><link name="base"/><link name="a"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="j" type="revolute"><parent link="base"/><child link="a"/>'
        '<limit lower="-1" upper="1" effort="1" velocity="1"/><safety_controller k_velocity="1"/>'
        "</joint></robot>"
    )
    (tmp_path / "arm.urdf").write_text(text)
    status, out, _ = call("check", "arm.urdf")
    assert status == 0 and "safety_controller" in out
    (tmp_path / "arm.urdf").write_text(text.replace('"-1" upper="1"', '"-90" upper="90"'))
    status, out, _ = call("check", "arm.urdf")
    assert status == 1 and "degrees" in out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("simulate missing.urdf", "missing.urdf"),
        ("simulate furuta --q0 beta=1", "beta"),
        ("simulate furuta --q0 alpha", "name=value"),
        ("simulate furuta --integrator magic", "rk4"),
        ("simulate furuta --duration -1", "duration"),
        ("simulate furuta --duration 1e6 --out run.csv", ".nc"),
        ("simulate furuta --duration 1e6 --plot run.xyz", ".png"),
        ("simulate furuta --duration 1e6 --html nowhere/run.html", "nowhere"),
        ("simulate furuta --duration 1e6 --out folder.nc", "folder.nc' is a folder"),
        ("simulate furuta --duration 1e6 --out arm.zarr", "arm.zarr' is a file"),
        ("simulate furuta --duration 1e6 --plot folder.png", "folder.png' is a folder"),
        ("view arm.json --html arm.json", "--html 'arm.json' must end in .html"),
        ("plot nowhere.nc", "nowhere.nc"),
        ("plot nowhere.nc --out a.gif", ".png"),
        ("plot folder.nc", "'folder.nc' is a folder, and a recording that is one ends in .zarr"),
        ("info arm.json", "format"),
        ("ik furuta --frame nose --position 0 0 1", "nose"),
        ("demo here --worlds 0", "--worlds is 0; give a whole number from 1"),
        ("demo here --worlds -2", "--worlds is -2; give a whole number from 1"),
        ("demo arm.json", "the folder 'arm.json' cannot be made: it is a file"),
        ("identify furuta one.csv", "one.csv: time has 1 sample; give at least 20"),
    ],
)
def test_errors_are_one_message_with_status_1(call, tmp_path, arguments, named):
    text = furuta().to_json().replace("zwang 2", "zwang 0")
    (tmp_path / "arm.json").write_text(text)
    (tmp_path / "arm.zarr").write_text(text)
    (tmp_path / "one.csv").write_text("time,q_theta,q_alpha,tau_theta,tau_alpha\n0,0,0,0,0\n")
    for folder in ("folder.nc", "folder.png"):
        (tmp_path / folder).mkdir()
    status, _, err = call(*arguments.split())
    assert status == 1 and (tmp_path / "arm.json").read_text() == text
    assert named in err and "Traceback" not in err


@pytest.mark.parametrize(
    ("module", "path"), [("mcap_export", "run.mcap"), ("storage", "run.zarr")], ids=["mcap", "zarr"]
)
def test_a_missing_library_is_told_before_the_simulation(call, monkeypatch, module, path):
    monkeypatch.setattr(f"zwang.recording.{module}.find_spec", lambda name: None)
    status, _, err = call(*f"simulate furuta --duration 1e6 --out {path}".split())
    assert status == 1 and "Traceback" not in err
    assert re.search(rf"needs? the library {path.partition('.')[2]}", err)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ("info furut", "furuta"),
        ("info Four-Bar", "four_bar"),
        ("simulate arm.jsn", "arm.json"),
        ("check models/am.json", os.path.join("models", "arm.json")),
        ("plot rnu.nc", "run.nc"),
        ("view rnu.nc", "run.nc"),
        ("info furuta --bas free", "--base"),
        ("inf furuta", "info"),
        ("simulate furuta --q0 alhpa=1", "alpha"),
    ],
)
def test_the_error_for_a_mistyped_name_suggests_a_similar_one(call, tmp_path, arguments, meant):
    (tmp_path / "models").mkdir()
    for name in ("arm.json", "notes.txt", "run.nc", "models/arm.json"):
        (tmp_path / name).touch()
    status, out, err = call(*arguments.split())
    text = " ".join(re.sub("[│╭╮╰╯─]", " ", out + err).split())
    assert status != 0 and re.search(rf"[Dd]id you mean ['\"]?{re.escape(repr(meant)[1:-1])}['\"?]", text), (
        text
    )


def test_the_error_for_an_unknown_model_lists_the_samples(call):
    status, _, err = call("info", "xyzzy")
    assert status == 1 and "mean" not in err and all(sample in err for sample in SAMPLES)


def test_a_file_has_precedence_over_a_sample_of_the_same_name(call, tmp_path):
    (tmp_path / "furuta").write_text(SAMPLES["four_bar"]().to_json())
    assert "four-bar" in call("info", "furuta")[1]


def test_the_demonstration_prints_a_report_and_writes_its_files(call, tmp_path):
    status, out, _ = call("demo", "here", "--worlds", "64")
    assert status == 0
    for word in ("Furuta", "r[2]", "64 worlds", "upright", "closed within", "Next: zwang simulate"):
        assert word in out
    assert zw.open_run(tmp_path / "here" / "furuta.nc").sizes["world"] == 64
    assert (tmp_path / "here" / "furuta.png").exists()


def test_python_m_zwang_is_the_command_line(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "zwang", "info", "furuta"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0 and "pendulum" in done.stdout
    closed = None if sys.platform == "win32" else partial(os.close, 1)
    done = subprocess.run(
        [sys.executable, "-m", "zwang", "info", "furut"],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True, preexec_fn=closed,
    )  # fmt: skip
    assert done.returncode == 1 and "'furuta'" in done.stderr and "Traceback" not in done.stderr
    timed = [sys.executable, "-X", "importtime", "-m", "zwang", "--version"]
    done = subprocess.run(timed, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip() == zw.__version__
    assert not re.search(r"\| +(xarray|scipy|sympy|mujoco|zwang\.api)$", done.stderr, re.MULTILINE)


def test_characters_that_standard_output_cannot_encode_are_escaped(call, monkeypatch, tmp_path):
    (tmp_path / "arm.json").write_text(
        zw.Mechanism("arm", [zw.Body("Körper", zw.Revolute("θ"), mass=1)]).to_json()
    )
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    status, _, err = call("info", "arm.json")
    assert (status, err) == (0, "") and rb"K\xf6rper  revolute \u03b8" in written.getvalue()


def test_commands_run_with_standard_output_closed(call, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdout", None)
    for arguments in ("info furuta", "equations furuta", "simulate furuta --duration 0.01 --out run.nc"):
        status, _, err = call(*arguments.split())
        assert (status, err) == (0, "")
    assert zw.open_run(tmp_path / "run.nc").sizes["time"] > 1


@pytest.mark.skipif(sys.platform == "win32" or shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_options_and_files(tmp_path):
    """The script that --install-completion writes, asked by bash itself."""
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "share")}
    install = [sys.executable, "-m", "zwang", "--install-completion", "--shell", "bash"]
    done = subprocess.run([*install, "-o", "zwang.bash"], cwd=tmp_path, env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr
    (tmp_path / "robot.urdf").touch()

    def completed(line: str) -> set[str]:
        words = line.split(" ")
        script = (
            "source ./zwang.bash; set -- $(complete -p zwang); COMP_WORDS=(" + " ".join(words) + "); "
            f"COMP_CWORD={len(words) - 1}; ${{@: -2:1}}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        )
        completion = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return set(completion.stdout.split())

    assert completed("zwang in") == {"info"}
    assert completed("zwang simulate furuta --inte") == {"--integrator"}
    assert completed("zwang plot run.nc --kind ph") == {"phase"}
    assert completed("zwang info robot.u") == {"robot.urdf"}


def test_convert_writes_each_format_and_lists_what_it_says_otherwise(call, tmp_path):
    status, out, _ = call("convert", "furuta", "a.xml")
    assert status == 0 and "2 bodies, 2 joints, 1 actuators" in out and "wrote a.xml" in out
    status, _, err = call("convert", "a.xml", "b.urdf")
    assert status == 1 and "Actuator 'tau'" in err and "with --no-strict it is omitted" in err
    assert not (tmp_path / "b.urdf").exists()
    status, out, _ = call("convert", "a.xml", "b.urdf", "--no-strict")
    assert status == 0 and "unsupported: Actuator 'tau': URDF has no Actuator" in out
    status, out, _ = call("convert", "b.urdf", "c.json")
    q, v = [0.3, 0.4], [1.0, 2.0]
    given = furuta(**FURUTA)
    for name in ("a.xml", "b.urdf", "c.json"):
        m = zw.load(tmp_path / name)
        assert np.abs(zw.mass_matrix(m, q) - zw.mass_matrix(given, q)).max() < 1e-12
        assert np.abs(zw.bias_forces(m, q, v) - zw.bias_forces(given, q, v)).max() < 1e-12
    assert zw.load(tmp_path / "a.xml").inputs == ("tau",)


def test_convert_gives_a_urdf_a_floating_base(call, tmp_path):
    call("convert", "double_pendulum", "a.urdf")
    (tmp_path / "b.urdf").write_text(
        '<robot name="r"><link name="base"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1"/></inertial></link></robot>'
    )
    status, _, _ = call("convert", "b.urdf", "b.xml", "--base", "free")
    assert status == 0 and 'type="free"' in (tmp_path / "b.xml").read_text()


def test_convert_names_the_formats(call):
    status, _, err = call("convert", "furuta", "a.obj")
    assert status == 1 and ".urdf, .xml, .mjcf, .json" in err


def test_no_number_of_a_large_linear_model_is_cut(call, tmp_path):
    bodies = "".join(
        f"<body pos='.1 0 0'><joint name='joint{k}' axis='0 1 0'/><geom size='.05'/>" for k in range(12)
    )
    (tmp_path / "chain.xml").write_text(f"<mujoco><worldbody>{bodies}{'</body>' * 12}</worldbody></mujoco>")
    status, out, _ = call("linearize", "chain.xml")
    assert status == 0 and "…" not in out
    assert all(out.count(f"joint{k}_dot") == 3 for k in range(12))


def test_symbols_and_spreads_of_samples_are_not_ignored(call):
    assert "m_pendulum" in call("equations", "furuta", "--symbolic", "mass")[1]
    status, _, err = call("equations", "furuta", "--symbolic", "nonsense")
    assert status == 1 and "symbolic contains 'nonsense'" in err
    status, _, err = call("simulate", "furuta", "--spread", "-1", "--worlds", "2")
    assert status == 1 and "--spread is -1" in err


def test_linearize_prints_the_model_and_its_poles(call):
    """Furuta's pendulum stands at alpha = 0, where it falls: one pole is positive."""
    status, out, _ = call("linearize", "furuta", "--q0", "alpha=0")
    poles = [complex(x) for x in out.split("poles:")[1].replace("\n", "").split(",")]
    assert status == 0 and "alpha_dot" in out
    assert len(poles) == 4 and sum(pole.real > 1e-9 for pole in poles) == 1
    status, _, err = call("linearize", "furuta", "--q0", "gamma=0")
    assert status == 1 and "gamma" in err
