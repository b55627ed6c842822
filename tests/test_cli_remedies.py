"""Remedies on the command line name options that the command has and accepts, not arguments of Python."""

from __future__ import annotations

import re

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.cli import app, main
from zwang.cli.application import command_of
from zwang.cli.remedies import in_options, use_options_of_command

URDF = """<robot name="u"><link name="base"/><link name="a"><inertial><mass value="{mass}"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><link name="tip"/>
<joint name="j" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
<joint name="t" type="fixed"><parent link="a"/><child link="tip"/><origin xyz="1 0 0"/></joint></robot>"""
MOCAP = """<mujoco><option timestep="0.001"/><worldbody>
<body name="hand" mocap="true" pos="0 0 1"><site name="held"/>
  <body name="child"><joint name="hinge" axis="0 1 0"/><geom size=".05" mass=".2" pos=".1 0 0"/></body></body>
</worldbody><keyframe><key name="moved" mpos="1 2 3" mquat="1 0 1 0" qpos="0.3"/><key name="home"/></keyframe>
</mujoco>"""


MESH = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
BESIDE = """<mujoco><compiler meshdir="../parts"/><asset><mesh name="t" file="t.obj"/></asset><worldbody>
<body><freejoint/><geom type="mesh" mesh="t" density="6"/></body></worldbody></mujoco>"""
PACKAGED = """<robot name="p"><link name="base"><collision><geometry><mesh filename="package://parts/t.obj"/>
</geometry></collision></link></robot>"""


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    """Runs a command in a folder with some models; gives (status, output and errors in one line)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(URDF.format(mass=1))
    (tmp_path / "invalid.urdf").write_text(URDF.format(mass=-1))
    (tmp_path / "mocap.xml").write_text(MOCAP)
    for folder in ("parts", "models"):
        (tmp_path / folder).mkdir()
    (tmp_path / "parts" / "t.obj").write_text(MESH)
    (tmp_path / "models" / "beside.xml").write_text(BESIDE)
    (tmp_path / "models" / "packaged.urdf").write_text(PACKAGED)
    friction = zw.Revolute("j", friction=1, friction_softness=None)
    hard = zw.Mechanism("hard", [zw.Body("a", friction, mass=1, inertia=(1, 1, 1))])
    (tmp_path / "hard.json").write_text(hard.to_json())

    def run(line: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as end:
            main(line.split())
        captured = capsys.readouterr()
        return int(end.value.code or 0), " ".join((captured.out + captured.err).split())

    return run


PYTHON = re.compile(r"\b[a-z_]+=(False|True|'|\"|\.\.\.|[\s,;]|$)")
"""An argument as in Python."""


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("ik arm.urdf --frame tip --position -1 0 0", "--no-limits"),
        ("info invalid.urdf", "--no-strict"),
        ("check invalid.urdf", "--no-strict"),
        ("simulate invalid.urdf", "--no-strict"),
        ("convert invalid.urdf a.json", "--no-strict"),
        ("convert hard.json a.xml", "--no-strict"),
        ("export arm.urdf a.fmu --dtype float32", "--dtype float64"),
        ("export arm.urdf code --integrator rk45", "--integrator euler"),
        ("export arm.urdf a.xyz", "--format c99"),
        ("info arm.urdf --base free", ""),
        ("info models/beside.xml", "--asset-dirs parts"),
        ("simulate models/beside.xml --asset-dirs nowhere", "--asset-dirs parts"),
        ("convert models/packaged.urdf a.json", "--package-dirs ."),
    ],
)
def test_a_remedy_is_an_option_of_the_command_that_is_accepted(call, line, remedy):
    _, text = call(line)
    assert not PYTHON.search(text), text
    option = remedy.split(" ")[0]
    assert option in text, text
    line = re.sub(rf"{option} \S+", "", line) if option else line
    app.parse_args([*line.split(), *remedy.split()], exit_on_error=False, print_error=False)


def test_the_remedies_help(call, tmp_path):
    assert "beyond the joint limits" in call("ik arm.urdf --frame tip --position -1 0 0")[1]
    status, text = call("ik arm.urdf --frame tip --position -1 0 0 --no-limits --q0 j=2.5")
    assert status == 0 and "converged" in text
    assert float(text.split()[1]) == pytest.approx(np.pi, abs=1e-5)
    assert call("ik arm.urdf --frame tip --position -1 0 0 --no-limits --iterations 0 --restarts 0")[0] == 1
    for line in ("info invalid.urdf", "convert invalid.urdf a.json", "convert hard.json a.xml"):
        assert call(line)[0] == 1
        status, text = call(f"{line} --no-strict")
        assert status == 0 and "strict" not in text  # which was given


def test_folders_of_meshes_and_packages_are_options(call):
    """The density of 6 kg/m^3 gives the tetrahedron of 1/6 m^3 the mass 1 kg; folders may be several."""
    status, text = call("info models/beside.xml --asset-dirs models --asset-dirs parts")
    assert status == 0 and "total mass 1 kg" in text
    assert call("check --asset-dirs parts models/beside.xml")[0] == 0
    status, text = call("info models/beside.xml --asset-dirs nowhere")
    assert status == 1 and "--asset-dirs nowhere is no folder" in text
    status, text = call("info models/packaged.urdf")
    assert status == 1 and "give the folder that contains it in --package-dirs" in text
    for folder in (".", "parts"):
        status, text = call(f"info models/packaged.urdf --package-dirs {folder}")
        assert status == 0 and "of which 1 are meshes" in text


def test_the_option_that_a_note_on_an_fmu_names_gives_model_exchange(call, monkeypatch):
    """The projection onto hard constraints belongs to the step; Baumgarte's stabilisation to the dynamics."""
    monkeypatch.setattr("zwang.interop.fmi._binary", lambda *_: {})
    monkeypatch.setattr("zwang.interop.fmi.c_compiler", lambda: None)
    _, text = call("export four_bar a.fmu --step 0.001")
    assert "for co-simulation only" in text and "--stabilization baumgarte" in text
    status, text = call("export four_bar a.fmu --step 0.001 --stabilization baumgarte")
    assert status == 0 and "for co-simulation only" not in text


KEPT = {
    "info": "pass limits=False.",  # info has no such option
    "simulate": "give integrator=zw.Adaptive('bdf', max_step=...)",
    "export": "zw.compile(m, dtype='float64') of frame 'dtype=\"a\"' and <joint name=\"j\"/>",
    "--version": "strict=False",
}


@pytest.mark.parametrize(
    ("command", "text", "expected"),
    [
        ("convert", "strict=False omits it (with strict=False: no)",
         "--no-strict omits it (with --no-strict: no)"),
        ("ik", "pass limits=False.", "pass --no-limits."),
        ("export", "give dtype='float64'", "give --dtype float64"),
        ("export", 'integrator="euler" or "rk4"', '--integrator euler or "rk4"'),
        ("export", "functions= selects some; name=..., is", "--function selects some; --name ..., is"),
        ("simulate", "use compiled=True, record=k, step=1e-3, step=0.01",
         "use --compiled, --record k, --step 1e-3, --step 0.01"),
        ("identify", "give check_units=False", "give --no-check-units"),
        ("identify", "ignore=['a b'] or ignore=['']", "--ignore 'a b' or --ignore ''"),
        ("identify", 'estimator="total" has no loss="huber"', "--estimator total has no --robust"),
        ("identify", "named in independent=, or in stribeck=", "named in --independent, or in --stribeck"),
        ("linearize", "give step=..., or a softness", "give --step ..., or a softness"),
        ("simulate", "(step=0.1). `seed=2`: (see step=1e+3, [base=free])",
         "(--step 0.1). `--seed 2`: (see --step 1e+3, [--base free])"),
        ("simulate", "give params={'base': ..., \"it's\": ...}; or step=0.1",
         "give --param base=... --param 'it'\"'\"'s'=...; or --step 0.1"),
        *((command, text, text) for command, text in KEPT.items()),
    ],
)  # fmt: skip
def test_arguments_are_named_as_options(command, text, expected):
    use_options_of_command(command_of([command]))
    assert in_options(text) == expected


NAMES = [
    "/tmp/step=0.1/bad.urdf, line 1",
    "/tmp/a=b/strict=False: no",
    r"C:\runs\step=0.1\bad.urdf: no",
    "https://x.y/?strict=False",
    "https://x.y/?a=1&strict=False: no",
    "base=fixed-wing.urdf, line 1",
    "step=0.1/bad.urdf",
    "run-step=0.1.urdf",
    "data[step=1]: no",
    "base='free'.urdf: no",
    "--step=0.1",
    "leave out --param step=0.1",
    "`--param base=1`",
]
"""Texts that contain parts like arguments, which are parts of names of files, of addresses or of options."""


@pytest.mark.parametrize("text", NAMES)
def test_names_with_parts_like_arguments_are_kept(text):
    use_options_of_command(app["simulate"])
    assert in_options(text) == text
    assert in_options(f"strict=False ({text})") == f"--no-strict ({text})"


def test_errors_state_the_names_of_files_and_of_symbols_as_they_are(call, tmp_path):
    """The remedy for symbols with the names of options is accepted as it is stated."""
    path = tmp_path / "data" / "step=0.1" / "bad.urdf"
    path.parent.mkdir(parents=True)
    path.write_text(URDF.format(mass=-1))
    file = path.relative_to(tmp_path).as_posix()
    assert f"error: {file}" in call(f"simulate {file}")[1]
    body = zw.Body(
        "a", zw.Revolute("j"), mass=sp.Symbol("base"), com=(sp.Symbol("seed"), 0, 0), inertia=(1, 1, 1)
    )
    (tmp_path / "sym.json").write_text(zw.Mechanism("sym", [body]).to_json())
    status, text = call("simulate sym.json")
    assert status == 1 and text.endswith("give --param base=... --param seed=...")
    remedy = text.rpartition("give ")[2].replace("...", "1")
    assert call(f"simulate sym.json --duration 0.01 {remedy}")[0] == 0
    assert "'base' is not 'name=value' with a number" in call("export sym.json code --param base")[1]
    assert "leave out --param base=1" in call("view run.nc --param base=1")[1]


def test_a_keyframe_moves_mocap_bodies(call, tmp_path):
    """The pendulum of the moved body swings as one whose mocap pose is a parameter."""
    assert call("simulate mocap.xml --duration 0.05 --keyframe moved --out a.nc")[0] == 0
    run = zw.open_run(tmp_path / "a.nc")
    pose = zw.frame_pose(zw.mechanism_of(run), [0.0], "held")
    np.testing.assert_allclose(pose.p, (1, 2, 3), atol=1e-12)
    np.testing.assert_allclose(pose.R, [[0, 0, 1], [0, 1, 0], [-1, 0, 0]], atol=1e-12)
    m, params = zw.with_mocap_parameters(zw.load(tmp_path / "mocap.xml"), "moved")
    expected = zw.simulate(m, "moved", duration=0.05, params=params, progress=False)
    np.testing.assert_allclose(run.q.values, expected.q.values, atol=1e-12)
    assert np.ptp(run.q.values) > 1e-3
    status, text = call("linearize mocap.xml --keyframe moved")
    A = zw.linearize(m.subs(params), "moved").A
    assert status == 0 and f"{np.max(np.abs(np.linalg.eigvals(A))):.6g}" in text
    assert call("simulate mocap.xml --duration 0.01 --keyframe home")[0] == 0
    status, text = call("simulate mocap.xml --keyframe nowhere")
    assert status == 1 and "'moved'" in text
