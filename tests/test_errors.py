"""Errors state the remedy, survive pickling, and contain no terminal control sequences."""

from __future__ import annotations

import concurrent.futures
import fractions
import multiprocessing
import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zwang as zw
from zwang.cli import main
from zwang.errors import (
    ArgumentError,
    DescriptionError,
    LoadError,
    LoadWarning,
    ParameterError,
    ShapeError,
    SimulationError,
    StateError,
    UnknownNameError,
    WriteError,
    ZwangError,
    visible,
)
from zwang.mechanism.samples import double_pendulum

HIDDEN = "\x1b]0;title\x07\x9b31m\u202e\u2066"


@pytest.fixture(scope="module")
def run() -> Any:
    return zw.simulate(double_pendulum(), duration=0.004, compiled=False, worlds=2)


# ---------------------------------------------------------------------------------------------- calls


def test_params_that_are_not_a_dictionary_are_rejected() -> None:
    with pytest.raises(ParameterError, match="dictionary"):
        zw.simulate(double_pendulum(), duration=0.01, params=[1])  # type: ignore[arg-type]


def test_a_page_without_worlds_is_rejected(run: Any, tmp_path: Path) -> None:
    with pytest.raises(ShapeError, match="at least one world"):
        zw.save_html(run, tmp_path / "a.html", worlds=0)
    with pytest.raises(ShapeError, match=r"isel\(world=\[0\]\)"):
        zw.save_html(run.isel(world=0), tmp_path / "a.html")
    assert not (tmp_path / "a.html").exists()


def test_a_function_that_is_no_control_is_refused_before_the_run() -> None:
    with pytest.raises(SimulationError, match=r"control is a function with the arguments \(t\).*t, q, v"):
        zw.simulate(double_pendulum(), duration=0.01, control=lambda t: [0.0], progress=False)  # type: ignore


def test_starts_of_a_rollout_that_are_no_numbers_are_named() -> None:
    fast = zw.compile(double_pendulum())
    start = {"q0": [0.0, 0.0], "v0": [0.0, 0.0], "activation": ()}
    for name, value in (("q0", [1, [2, 3]]), ("v0", ["a", "b"]), ("activation", 10**400)):
        with pytest.raises(StateError, match=name):
            fast.rollout(**{**start, name: value}, control=[0.0, 0.0], steps=1, step=0.001)
    with pytest.raises(StateError, match="is not an array of real numbers"):
        fast.frame_pose(10**400, "lower")
    with pytest.raises(SimulationError, match="rtol"):
        zw.Adaptive(rtol=10**400)


def _misuses_found_at_random() -> dict[str, Any]:
    arm = double_pendulum()
    tip, fast = arm.bodies[-1].name, zw.compile(arm)
    masked, zero = np.ma.masked_array([1.0, 2.0], [True, False]), [0.0, 0.0]
    return {
        "an integer beyond floats": lambda: fast.forward_dynamics(10**400, zero, zero),
        "masked elements of a step": lambda: fast.step(masked, zero, zero, step=0.01),
        "a ragged control": lambda: zw.linearize(arm, zero, control=[[1], [1, 2]]),
        "several numbers of steps": lambda: fast.rollout(zero, zero, zero, steps=np.array([2, 3])),
        "a time that is ragged": lambda: fast.integrate_configuration(zero, zero, [1, [2, 3]]),
        "masked elements": lambda: fast.frame_jacobian(masked, tip),
        "a set for a tolerance": lambda: zw.robot.solve_ik(arm, tip, [0, 0, 1], tolerance={1, 2}),
        "names for a start": lambda: zw.robot.solve_ik(arm, tip, [0, 0, 1], q0=("arm", (0, 0))),
        "a step beyond floats": lambda: fast.step(zero, zero, zero, step=10**400),
        "no rows": lambda: zw.task_acceleration(arm, zero, zero, zero, tip, [], rows=()),
        "a negative seed": lambda: zw.robot.solve_ik(arm, tip, [0, 0, 1], seed=-1),
        "a set for a column": lambda: zw.robot.from_dh(d=[0, 1], a=[1, 0], alpha={1, 2}),
    }


@pytest.mark.parametrize("misuse", _misuses_found_at_random())
def test_misuses_found_at_random_are_refused(misuse: str) -> None:
    with pytest.raises(ZwangError):
        _misuses_found_at_random()[misuse]()


def test_unusual_numbers_and_empty_containers_are_read(tmp_path: Path) -> None:
    body = zw.Body("a", zw.Revolute("a"), mass=1, inertia=(1, 1, 1))
    spring = zw.Spring("a", fractions.Fraction(1, 3))
    m = zw.Mechanism("m", [body], forces=[spring], tendons=[zw.Tendon("t", {"a": 1}, wraps={})])
    assert zw.Mechanism.from_json(m.to_json()).forces[0].stiffness == (1 / 3,)
    assert m.symbols == () and zw.ContactPair("p", ("a", "b"), solreffriction={}).solreffriction == ()
    path = tmp_path / "m.json"
    path.write_text(m.to_json())
    assert zw.load(path, symbolic=np.zeros(0)).symbols == ()
    ends = ("a", (0, 0, 0)), ("world", (1, 0, 0))
    far = m.replace(forces=[zw.PointSpring(*ends, stiffness=1.0, length=1e308)])
    assert zw.energy(far, [0.0], [0.0]).potential == np.inf


def test_a_picture_has_a_format(tmp_path: Path) -> None:
    space = zw.robot.workspace(double_pendulum(), double_pendulum().bodies[-1].name, samples=20)
    with pytest.raises(WriteError, match=r"'\.nc' is no format of pictures; give one of .*\.pdf"):
        zw.plot_manipulability(space, path=tmp_path / "map.nc")
    assert not (tmp_path / "map.nc").exists()


def test_a_mechanism_without_joints_is_in_equilibrium() -> None:
    assert zw.robot.equilibrium(zw.Mechanism("post", [])).q.shape == (0,)


def test_only_recordings_are_saved(tmp_path: Path) -> None:
    with pytest.raises(ShapeError, match="to_json"):
        zw.save(double_pendulum(), tmp_path / "a.nc")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["a.nc", "a.zarr", "a.html", "a.png"])
def test_paths_that_cannot_be_written_are_named(run: Any, name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / name  # the folder is a file: no one, not even root, can write there
    write = {".html": zw.save_html, ".png": zw.plot}.get(path.suffix, zw.save)
    with pytest.raises(WriteError, match=name) as caught:
        write(run, path)
    assert isinstance(caught.value, OSError)


def test_damaged_recordings_are_load_errors(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    zw.save(run, path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(24):
        data = bytearray(whole)
        for at in rng.integers(len(data), size=20):
            data[at] ^= 1 << rng.integers(8)
        path.write_bytes(data[: rng.integers(len(data))] if rng.random() < 0.3 else data)
        try:
            zw.mechanism_of(zw.open_run(path))
        except LoadError:
            refused += 1
    assert refused > 5


def test_missing_files_and_folders_are_told(run: Any, tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"there is no recording '.*run\.nc'"):
        zw.open_run(tmp_path / "run.nc")
    with pytest.raises(WriteError, match=r"there is no folder '.*results'; create it"):
        zw.save(run, tmp_path / "results" / "run.nc")


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("integrator", ["euler", "dop853"])
def test_a_controller_that_returns_arrays_is_reported_by_name(compiled: bool, integrator: str) -> None:
    def control(t: Any, q: Any, v: Any) -> dict[str, Any]:
        return {"shoulder": np.array([q[0], q[1]])}

    with pytest.raises(ShapeError, match=r"'shoulder'.*one number"):
        zw.simulate(
            double_pendulum(), duration=0.01, control=control, compiled=compiled, integrator=integrator
        )


def test_an_argument_of_another_type_is_reported_with_the_allowed_types() -> None:
    with pytest.raises(
        ArgumentError, match=r"mechanism of energy is \[1, 2\]; it must be a zw.Mechanism"
    ) as caught:
        zw.energy([1, 2], [0], [0])  # type: ignore[arg-type]
    assert isinstance(caught.value, TypeError)
    with pytest.raises(ArgumentError, match="kind of plot is 7; it must be a string"):
        zw.plot(None, kind=7)  # type: ignore[arg-type]
    with pytest.raises(DescriptionError, match="name of connect is 1; it must be a string"):
        zw.Connect(1, ("a", (0, 0, 0)), ("b", (0, 0, 0)))  # type: ignore[arg-type]
    with pytest.raises(DescriptionError, match=r"surface of sphere 's' is 1; give a zw\.Surface"):
        zw.Sphere(1, name="s", surface=1)  # type: ignore[arg-type]


def test_names_in_json_must_be_strings() -> None:
    text = double_pendulum().to_json()
    for wrong in ("1", "null", "[]", "true", '{"number": "nan"}'):
        with pytest.raises(LoadError):
            zw.Mechanism.from_json(text.replace('"upper"', wrong))


def test_a_part_in_the_wrong_list_is_reported_with_its_place() -> None:
    bodies = double_pendulum().bodies
    with pytest.raises(DescriptionError, match="ContactExclude belongs in contacts="):
        misplaced: Any = zw.ContactExclude(("upper", "lower"))
        zw.Mechanism(bodies=bodies, constraints=[misplaced])
    with pytest.raises(DescriptionError, match="Motor belongs in forces="):
        zw.Mechanism(bodies=bodies, constraints=[zw.Motor("m", "elbow")])  # type: ignore[arg-type]


def test_coincident_points_and_bodies_without_inertia_are_reported() -> None:
    body = zw.Body("b", zw.Free("j"), mass=1, inertia=(1, 1, 1))
    m = zw.Mechanism(
        "m", [body], constraints=[zw.Distance("rod", ("b", (0, 0, 0)), ("world", (0, 0, 0)), 1.0)]
    )
    with pytest.raises(zw.errors.SolveError, match=r"'rod'.*coincide"):
        zw.constrained_dynamics(m, m.neutral, np.zeros(6), np.zeros(6))


# --------------------------------------------------------------------------------------- other processes


def _mistaken(name: str) -> Any:
    return double_pendulum().joint(name)


def _reached(position: Any) -> Any:
    return zw.robot.solve_ik(double_pendulum(), "lower", position)


def test_every_error_survives_pickling() -> None:
    for name, kind in vars(zw.errors).items():
        if isinstance(kind, type) and issubclass(kind, Exception):
            error = kind("joint", "x", ["a", "b"]) if kind is UnknownNameError else kind(f"about {name}")
            copy = pickle.loads(pickle.dumps(error))
            assert type(copy) is kind and str(copy) == str(error)
    unknown = pickle.loads(pickle.dumps(UnknownNameError("joint", "elbw", ["elbow"])))
    assert str(UnknownNameError("joint", np.str_("elbw"), [np.str_("elbow")])) == str(unknown)
    assert "{1}" in str(pickle.loads(pickle.dumps(UnknownNameError("joint", {1}, ["a"]))))
    assert (unknown.kind, unknown.name, unknown.valid) == ("joint", "elbw", ("elbow",)) and "'elbow'?" in str(
        unknown
    )


def test_errors_and_results_return_from_a_worker_process() -> None:
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        with pytest.raises(UnknownNameError, match="Did you mean 'elbow'"):
            pool.submit(_mistaken, "elbw").result(timeout=60)
        found = pool.submit(_reached, [0.5, 0.0, -0.5]).result(timeout=60)
    here = _reached([0.5, 0.0, -0.5])
    np.testing.assert_array_equal(found.q, here.q)
    assert str(found.trace) == str(here.trace) and str(found) == str(here)


# ---------------------------------------------------------------------------------------------- terminals


def test_control_characters_are_escaped() -> None:
    assert visible("plain, \u00e4\u4e2d, two\nlines\t") == "plain, \u00e4\u4e2d, two\nlines\t"
    assert visible(HIDDEN) == r"\x1b]0;title\x07\x9b31m\u202e\u2066"
    assert visible("\r\ud800\u2028") == r"\r\ud800\u2028"
    for kind in (LoadError, LoadWarning, DescriptionError):
        assert str(kind(HIDDEN)) == visible(HIDDEN)
    assert HIDDEN not in str(UnknownNameError("joint", "x", [HIDDEN]))


def _hostile() -> zw.Mechanism:
    arm = zw.Body(
        f"arm{HIDDEN}",
        zw.Revolute(f"joint{HIDDEN}", limits=(-90, 90)),
        mass=1,
        com=(0.1, 0, 0),
        inertia=(1, 1, 1),
    )
    motor = zw.Motor(f"u{HIDDEN}", f"{arm.joints[0].name}")
    return zw.Mechanism(f"m{HIDDEN}", [arm], forces=[motor])


@pytest.mark.parametrize(
    "command",
    [
        "info m.json",
        "check m.json",
        "simulate m.json --duration 0.01 --no-compiled",
        "equations m.json",
        "equations m.json --format latex",
        "simulate m.json --q0 elbow=1",
        "ik m.json --frame x --position 0 0 0",
        "info missing.json",
        "bench m.json --worlds 0",
    ],
)
def test_no_control_character_of_a_name_reaches_the_terminal(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.json").write_text(_hostile().to_json())
    with pytest.raises(SystemExit):
        main(command.split())
    out, err = capfd.readouterr()
    assert out + err and not any(c in out + err for c in "\x1b\x07\x9b\u202e\u2066")
    if command.startswith(("info m.", "check")):
        assert r"\x1b]0;title" in out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("simulate still.json", "no movable joint"),
        ("bench still.json", "no movable joint"),
        ("bench furuta --worlds 0", "--worlds is 0"),
        ("simulate furuta --worlds 0", "--worlds is 0"),
        ("simulate double_pendulum --worlds 2 --seed -1", "--seed is -1"),
        (f"simulate double_pendulum --worlds {2**70}", "--worlds is"),
        (f"bench double_pendulum --worlds {2**70}", "--worlds is"),
        (f"simulate double_pendulum --record {2**70} --worlds -1", "--worlds is -1"),
        ("view double_pendulum --worlds 0 --html a.html", "--worlds is 0"),
        (
            "simulate double_pendulum --duration 0.01 --no-compiled --html still.json/a.html",
            "there is no folder",
        ),
        (f"info {'a' * 300}.urdf", "too long"),
    ],
)
def test_invalid_commands_end_in_one_sentence(
    command: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("still.json").write_text(zw.Mechanism("still", [zw.Body("b", mass=1)]).to_json())
    with pytest.raises(SystemExit) as end:
        main(command.split())
    _out, err = capfd.readouterr()
    assert end.value.code == 1 and "Traceback" not in err
    assert message in " ".join(err.split()), err


def test_worlds_beyond_the_memory_are_rejected_at_once() -> None:
    for worlds in (10**9, 2**64, 2**200):
        with pytest.raises(SimulationError, match="at most"):
            zw.simulate(double_pendulum(), duration=0.01, worlds=worlds)


# ---------------------------------------------------------------------------------------------- files

LINK = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'


def _urdf(inside: str) -> str:
    return f'<robot name="r"><link name="a">{LINK}{inside}</link></robot>'


@pytest.mark.parametrize("strict", [True, False])
def test_names_longer_than_a_file_system_allows(strict: bool, tmp_path: Path) -> None:
    name = "m" * 300 + ".stl"
    texts = {
        "a.urdf": _urdf(f'<collision><geometry><mesh filename="{name}"/></geometry></collision>'),
        "p.urdf": _urdf(
            f'<collision><geometry><mesh filename="package://{"p" * 300}/a.stl"/></geometry></collision>'
        ),
        "a.xml": f'<mujoco><asset><mesh name="m" file="{name}"/></asset></mujoco>',
        "b.xml": f'<mujoco><include file="{name}"/></mujoco>',
        "c.xml": f'<mujoco><include file="{"d/" * 3000}x.xml"/></mujoco>',
    }
    for file, text in texts.items():
        (tmp_path / file).write_text(text)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                zw.load(tmp_path / file, strict=strict)
                said = str([str(w.message) for w in caught])
            except LoadError as error:
                said = str(error)
        assert "too long" in said and "line 1" in said, (file, said)
    with pytest.raises(LoadError):
        zw.load(tmp_path / ("x" * 300))
    assert os.listdir(tmp_path)


def test_a_missing_mesh_is_an_error_unless_it_is_visual(tmp_path: Path) -> None:
    path = tmp_path / "a.urdf"
    for kind in ("collision", "visual"):
        path.write_text(_urdf(f'<{kind}><geometry><mesh filename="gone.stl"/></geometry></{kind}>'))
        if kind == "collision":
            with pytest.raises(LoadError, match=r"line 1.*no file 'gone.stl' .*; it is a collision shape"):
                zw.load(path)
        with pytest.warns(LoadWarning, match="gone.stl"):
            m = zw.load(path, strict=kind == "visual")
        (note,) = (n for n in m.report.notes if "gone.stl" in n.what)
        assert ("only visual" in note.what) == (kind == "visual") and "line 1" in note.where
    both = '<{0}><geometry><mesh filename="gone.stl"/></geometry></{0}>'
    path.write_text(_urdf(both.format("visual") + both.format("collision")))
    with pytest.raises(LoadError, match="collision shape"):
        zw.load(path)


def test_an_invalid_mesh_is_reported_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "t.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    )
    for scale in ("1e308 1 1", "1e200 1e200 1e200"):
        (tmp_path / "a.urdf").write_text(
            _urdf(f'<collision><geometry><mesh filename="t.obj" scale="{scale}"/></geometry></collision>')
        )
        with pytest.raises(LoadError, match=r"line 1.*scale"):
            zw.load(tmp_path / "a.urdf")


def test_a_moving_link_without_mass_is_reported_with_the_fix(tmp_path: Path) -> None:
    joint = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
    for inside in ("", '<inertial><mass value="0"/><inertia ixx="0" iyy="0" izz="0"/></inertial>'):
        path = tmp_path / "a.urdf"
        path.write_text(f'<robot name="r"><link name="a"/>\n<link name="b">{inside}</link>{joint}</robot>')
        with pytest.raises(
            LoadError, match=r"line 2.*link 'b'.*give it a mass and an inertia, or make the joint fixed"
        ):
            zw.load(path)
    text = '<mujoco><worldbody>\n<body name="b"><joint name="j"/>{}</body></worldbody></mujoco>'
    for inside in ("", '<inertial pos="0 0 0" mass="0" diaginertia="0 0 0"/>'):
        (tmp_path / "a.xml").write_text(text.format(inside))
        with pytest.raises(LoadError, match=r"line 2.*(mass|inertia)"):
            zw.load(tmp_path / "a.xml")


BODY = '<body name="b"><freejoint/><geom name="g" size="0.1" {}/></body>'


@pytest.mark.parametrize(
    ("option", "geom", "message"),
    [
        ('iterations="0"', "", "iterations"),
        ('iterations="-3"', "", "iterations"),
        ('impratio="-1"', "", "impratio"),
        ('tolerance="-1"', "", "tolerance"),
        ("", 'friction="-1 0 0"', "friction"),
        ("", 'solref="0.02 -1"', "solref"),
        ("", 'solimp="1.5 0.95 0.001"', "solimp"),
        ("", 'solimp="0.9 0.95 -0.001"', "solimp"),
        ("", 'quat="0 0 0 1"', "x, y, z, w"),
    ],
)
def test_numbers_out_of_range_in_files_are_reported_with_their_line(
    option: str, geom: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.xml"
    path.write_text(f"<mujoco>\n<option {option}/>\n<worldbody>\n{BODY.format(geom)}\n</worldbody></mujoco>")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            m = zw.load(path)
            said = [f"{note.where}: {note.what}" for note in m.report.notes if note.kind == "implausible"]
            assert any(message in str(w.message) for w in caught)
        except LoadError as error:
            said = [str(error)]
    line = 2 if option else 4
    assert any(message in text and f"line {line}" in text for text in said), said


def test_a_half_turn_beside_small_rotations_is_valid(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(
        '<mujoco><worldbody><site quat="1 0 0 0"/><site quat="0 0 0 1"/></worldbody></mujoco>'
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not [n for n in zw.load(tmp_path / "a.xml").report.notes if n.kind == "implausible"]
