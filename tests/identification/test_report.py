"""The report lists every parameter, escapes names, and `zwang identify` writes it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.identification.test_closed_loops import DRIVES, drive, five_bar, lagrange_forces
from tests.identification.test_fit import motion
from zwang.cli import main
from zwang.errors import LoadError
from zwang.mechanism.samples import double_pendulum

TRUE = double_pendulum(m1=2.0, m2=3.0, l1=0.5, l2=0.7).replace(
    forces=[zw.Damper("shoulder", 0.4), zw.Damper("elbow", 0.2)]
)
MODEL = double_pendulum(m1=1.0, m2=2.0, l1=0.5, l2=0.7)
KINDS = ("inertia", "damping")


def samples(noise: float = 0.3, count: int = 1500) -> zw.identify.Measurements:
    t, q, v, a = motion(2, count, seed=3)
    tau = zw.compile(TRUE).inverse_dynamics(q, v, a)
    return zw.identify.Measurements(t, q, v, a, tau + noise * np.random.default_rng(0).normal(size=tau.shape))


@pytest.fixture(scope="module")
def found() -> zw.identify.Fit:
    return zw.identify.fit(MODEL, samples(), kinds=KINDS)


def test_every_parameter_is_in_the_report_with_its_status(found):
    text = str(zw.identify.report(found))
    for parameter in found.base.parameters:
        start = re.compile(rf"{re.escape(parameter.name)} +\S+ +(found|bound|invisible)")
        row = next(line for line in text.splitlines() if start.match(line))
        word = {"alone": " found ", "combined": "bound to others", "invisible": "invisible"}
        assert word[found.status(parameter.name)] in row
    assert "8 base parameters of 22 parameters" in text
    line = next(x for x in text.splitlines() if x.startswith("damping_elbow") and " to " in x)
    lower, upper = map(float, re.search(r"(\S+) to (\S+)", line).groups())
    assert lower < 0.2 < upper and upper - lower < 0.1


def test_residuals_and_cross_validation_are_in_the_report(found):
    text = str(zw.identify.report(found))
    rows = [line.split() for line in text.splitlines() if line.startswith(("shoulder ", "elbow "))]
    assert len(rows) == 2
    for row in rows:  # force, residual, held-back residual: the noise is 0.3 N m
        assert float(row[2]) == pytest.approx(0.3, rel=0.1) and float(row[3]) == pytest.approx(0.3, rel=0.2)


def test_a_planned_motion_is_advised_where_one_can_be_planned(found):
    poor = replace(found, estimate=replace(found.estimate, scaled_condition=1e4))
    coupled = MODEL.replace(constraints=[zw.JointCoupling("c", "elbow", "shoulder")])
    assert "zw.identify.excitation plans" in str(zw.identify.report(poor))
    text = str(zw.identify.report(replace(poor, model=coupled)))
    assert "some intervals are wide.\n" in text and "excitation" not in text


def test_data_that_no_mechanism_produces_are_told():
    """With the sign of the forces changed, masses would be negative."""
    data = samples()
    wrong = zw.identify.fit(MODEL, replace(data, tau=-data.tau), kinds=KINDS)
    assert wrong.outside and wrong.is_consistent()
    assert "No physically consistent mechanism" in str(zw.identify.report(wrong))


def test_the_page_is_self_contained_and_names_are_escaped(found, tmp_path):
    evil = '<script>alert("x")</script>'
    named = replace(found, model=found.model.replace(name=evil))
    path = tmp_path / "out.html"
    zw.identify.report(named).save(path)
    page = path.read_text("utf-8")
    assert evil not in page and "&lt;script&gt;" in page
    assert "http" not in page.replace("http-equiv", "") and "<script" not in page
    assert page.count("<svg") == 2 and page.count("<table>") == 3
    assert "<table>" in zw.identify.report(named)._repr_html_()


def recorded(noise: float = 2e-4, samples: int = 301) -> zw.identify.Measurements:
    """A simulated record of positions and forces, linear between samples, with errors of the positions."""
    t = np.arange(samples) * 0.01
    tau = np.stack([8 * np.sin(4 * t) + 5 * np.sin(9 * t), 4 * np.sin(5 * t + 1)], axis=1)
    start = np.array([0.3, -0.2])
    steps = 5 * (samples - 1)
    middles = 0.01 * (np.arange(steps) + 0.5) / 5
    acting = np.stack([np.interp(middles, t, x) for x in tau.T], axis=1)
    run = zw.compile(TRUE).rollout(start, np.zeros(2), acting, steps=steps, every=5)
    q = np.concatenate([[start], run[0]])
    q += noise * np.random.default_rng(0).normal(size=q.shape)
    return zw.identify.Measurements(t, q, np.zeros_like(q), np.zeros_like(q), tau)


def test_the_report_of_a_fit_by_simulation(tmp_path):
    data = recorded()
    fit = zw.identify.fit_by_simulation(MODEL, data.time, data.q, data.tau, kinds=("inertia", "damping"),
                                        deviation=2e-4)  # fmt: skip
    report = zw.identify.report(fit)
    text = str(report)
    assert "the record tells 8 of 8 combinations of 22 parameters" in text
    lines = [x for x in text.splitlines() if x.startswith("damping_elbow")]
    row = next(x for x in lines if "found" in x)
    lower, upper = map(float, re.search(r"(\S+) to (\S+)", row).groups())
    assert lower < 0.2 < upper and upper - lower < 0.1
    for name in ("shoulder", "elbow"):  # residual rms, errors, their ratio
        row = next(x.split() for x in text.splitlines() if x.startswith(f"{name} "))
        assert float(row[1]) == pytest.approx(2e-4, rel=0.1) and float(row[3]) == pytest.approx(1, rel=0.15)
    report.save(tmp_path / "simulated.html")
    page = (tmp_path / "simulated.html").read_text("utf-8")
    assert page.count("<svg") == 2 and page.count("<table>") == 3 and "<script" not in page
    assert np.abs(fit.simulated - fit.measured).max() < 1.5e-3 and fit.time.shape == fit.measured.shape[:2]


def write_csv(
    path, data: zw.identify.Measurements, parts=("q", "v", "a", "tau"), names=("shoulder", "elbow")
) -> None:
    header = ["time", *(f"{part}_{name}" for part in parts for name in names)]
    table = np.column_stack([data.time, *(getattr(data, part) for part in parts)])
    np.savetxt(path, table, delimiter=",", header=",".join(header), comments="", fmt="%.17g")


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.json").write_text(MODEL.to_json())
    write_csv(tmp_path / "data.csv", samples())

    def run(*arguments: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(["identify", "arm.json", *arguments])
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out + printed.err

    return run


def test_the_command_writes_a_report_and_a_model(call, tmp_path):
    status, text = call("data.csv", "--kind", "inertia", "--kind", "damping",
                        "--report", "out.html", "--out", "new.json")  # fmt: skip
    assert status == 0 and "8 base parameters of 22 parameters" in text and "wrote out.html" in text
    assert "Base parameters" in (tmp_path / "out.html").read_text()
    fitted = zw.Mechanism.from_json((tmp_path / "new.json").read_text())
    q, v, a = [0.3, -0.8], [1.0, 2.0], [0.5, -1.0]
    expected = zw.inverse_dynamics(TRUE, q, v, a)
    np.testing.assert_allclose(zw.inverse_dynamics(fitted, q, v, a), expected, rtol=0.05)


def test_the_command_fits_several_files(call, tmp_path):
    (tmp_path / "noted.csv").write_text(
        "\n".join(
            f"{line},{'note' if not k else 0}"
            for k, line in enumerate((tmp_path / "data.csv").read_text().splitlines())
        )
    )
    status, text = call("data.csv", "noted.csv", "--kind", "inertia", "--ignore", "note")
    assert status == 0 and "2400 samples of 2 trials" in " ".join(text.split())
    status, text = call("data.csv", "noted.csv", "--kind", "inertia", "--ignore", "not")
    assert status == 1 and "--ignore not names no column. Did you mean 'note'" in " ".join(text.split())
    status, text = call("data.csv", "noted.csv", "--method", "simulation", "--kind", "damping",
                        "--ignore", "note")  # fmt: skip
    assert status == 0 and "by simulation of 58 windows of 50 samples" in " ".join(text.split())


def test_a_file_that_cannot_hold_the_fitted_model_is_refused_before_the_fit(call, tmp_path, monkeypatch):
    """By default nothing is fitted that a URDF cannot hold; the written file is the fitted model."""
    status, text = call("data.csv", "--out", "new.urdf")
    assert status == 0 and "wrote new.urdf" in text and "armature" not in text
    state = [0.3, -0.8], [1.0, 2.0], [0.5, -1.0]
    fitted = zw.inverse_dynamics(zw.load(tmp_path / "new.urdf"), *state)
    np.testing.assert_allclose(fitted, zw.inverse_dynamics(TRUE, *state), rtol=0.05)
    monkeypatch.setattr(zw.identify, "read_csv", None)  # nothing is read or fitted
    status, text = call("data.csv", "--out", "missing/other.json")
    assert status == 1 and "--out 'missing/other.json': there is no folder 'missing'" in " ".join(
        text.split()
    )
    status, text = call("data.csv", "--kind", "armature", "--out", "other.urdf")
    assert status == 1 and "--no-strict" in text and not (tmp_path / "other.urdf").exists()
    sprung = MODEL.replace(forces=(zw.Spring("elbow", 2.0),))
    (tmp_path / "arm.json").write_text(sprung.to_json())
    status, text = call("data.csv", "--out", "other.urdf")
    assert status == 1 and "Spring on 'elbow'" in text and "--no-strict" in text


def test_the_command_names_the_joints_that_it_fixes_in_the_file(call, tmp_path):
    (tmp_path / "arm.json").write_text(TRUE.to_json())
    t, q, v, a = motion(1, 400, seed=3)
    tau = zw.compile(zw.identify.with_fixed_joints(TRUE, "elbow")).inverse_dynamics(q, v, a)
    write_csv(tmp_path / "data.csv", zw.identify.Measurements(t, q, v, a, tau), names=("shoulder",))
    status, text = call("data.csv", "--fix", "elbow", "--kind", "inertia", "--out", "new.json")
    assert status == 0, text
    assert "unsupported: joint elbow: fixed by --fix, also in the file" in " ".join(text.split())
    assert "left out with it: 1 of 2 forces" in " ".join(text.split())
    fitted = zw.Mechanism.from_json((tmp_path / "new.json").read_text())
    assert [joint.name for joint in fitted.joints] == ["shoulder"]
    np.testing.assert_allclose(
        zw.inverse_dynamics(fitted, [0.3], [1.0], [0.5]),
        zw.inverse_dynamics(TRUE, [0.3, 0], [1.0, 0], [0.5, 0])[:1],
        rtol=1e-6,
    )


def test_the_command_fits_by_simulation(call, tmp_path):
    write_csv(tmp_path / "record.csv", recorded(), parts=("q", "tau"))
    status, text = call("record.csv", "--method", "simulation", "--kind", "inertia", "--kind", "damping",
                        "--report", "out.html", "--out", "new.json")  # fmt: skip
    assert status == 0 and "combinations of 22 parameters" in text
    assert "Coordinates" in (tmp_path / "out.html").read_text()
    fitted = zw.Mechanism.from_json((tmp_path / "new.json").read_text())
    settings = "--step 0.005 --integrator rk4 --window 40 --starts 1".split()
    status, text = call("record.csv", "--method", "simulation", "--kind", "damping", *settings)
    assert status == 0 and "windows of 40 samples" in " ".join(text.split())
    status, text = call("record.csv", *settings)
    assert status == 1 and "leave out --step and --integrator and --window and --starts" in text
    state = [0.3, -0.8], [1.0, 2.0], [0.5, -1.0]
    expected = zw.inverse_dynamics(TRUE, *state)
    np.testing.assert_allclose(zw.inverse_dynamics(fitted, *state), expected, rtol=0.02)
    status, text = call("record.csv", "--method", "simulation", "--cutoff", "5")
    assert status == 1 and "leave out --cutoff" in text


def test_the_model_fitted_by_simulation_keeps_its_motors_and_sensors(call, tmp_path):
    write_csv(tmp_path / "record.csv", recorded(), parts=("q", "tau"))
    driven = MODEL.replace(
        forces=[zw.Motor("drive", "elbow", gear=5.0), zw.Damper("shoulder", 0.1)],
        sensors=[zw.JointSensor("angle", "position", "elbow"), zw.ActuatorSensor("force", "force", "drive")],
        keyframes=[zw.Keyframe("start", q=(0.1, 0.2), control=(0.5,))],
    )
    (tmp_path / "arm.json").write_text(driven.to_json())
    status, text = call("record.csv", "--method", "simulation", "--kind", "damping", "--out", "new.json")
    assert status == 0, text
    fitted = zw.Mechanism.from_json((tmp_path / "new.json").read_text())
    assert fitted.inputs == driven.inputs and fitted.sensors == driven.sensors
    assert fitted.keyframes == driven.keyframes and driven.forces[0] in fitted.forces


def interval(text: str, name: str) -> tuple[float, float]:
    """The interval of a base parameter in a printed report."""
    line = next(x for x in text.splitlines() if x.startswith(f"{name} ") and " to " in x)
    found = re.search(r"(\S+) to (\S+)", line)
    assert found
    return float(found[1]), float(found[2])


def test_the_command_fits_stribeck_friction_and_motor_constants(call, tmp_path):
    data = samples(0.05)
    v = data.v[:, 0]
    data.tau[:, 0] += 0.5 * np.sign(v) + 2.0 * np.exp(-((v / 0.4) ** 2)) * np.sign(v)
    data.tau[:, 1] /= 0.05
    write_csv(tmp_path / "current.csv", data)
    arguments = ["--kind", "inertia", "--kind", "damping", "--kind", "friction", "--stribeck", "shoulder",
                 "--motor", "elbow", "--no-check-units"]  # fmt: skip
    status, text = call("current.csv", *arguments, "--out", "new.json")
    assert status == 0
    omitted = next(line for line in text.splitlines() if line.startswith("unsupported: "))
    for name in ("stribeck_shoulder", "stribeck_velocity_shoulder", "motor_elbow"):
        assert f"{name} = " in omitted
    for name, exact in {
        "stribeck_shoulder": 2.0,
        "stribeck_velocity_shoulder": 0.4,
        "motor_elbow": 0.05,
    }.items():
        lower, upper = interval(text, name)
        assert lower < exact < upper and upper - lower < 0.1 * exact, name
    status, text = call("current.csv", *arguments, "--method", "simulation")
    assert status == 1 and "leave out --stribeck and --motor" in text
    status, text = call("current.csv", "--stribeck", "elbw")
    assert status == 1 and "elbow" in text


def test_the_command_fits_a_closed_loop(call, tmp_path):
    linkage = five_bar()
    (tmp_path / "arm.json").write_text(linkage.to_json())
    t, *given = drive(400)
    q, v, a = zw.identify.closed_loop_motion(linkage, *given, independent=DRIVES)
    tau = np.zeros_like(v)
    tau[:, [linkage.joint(n).v.start for n in DRIVES]] = [
        lagrange_forces(*state) for state in zip(*given, strict=True)
    ]
    write_csv(tmp_path / "loop.csv", zw.identify.Measurements(t, q, v, a, tau), names=linkage.speed_names)
    options = [x for name in DRIVES for x in ("--independent", name)]
    status, text = call("loop.csv", "--kind", "inertia", *options)
    found = zw.identify.base_parameters(linkage, kinds="inertia", independent=DRIVES)
    assert status == 0 and f"{len(found)} base parameters of {len(found.parameters)} parameters" in text
    rows = [line.split() for line in text.splitlines() if line.startswith(DRIVES)]
    assert len(rows) == len(DRIVES) and all(float(row[2]) < 1e-3 * float(row[1]) for row in rows)


def test_the_command_rejects_bad_data(call, tmp_path):
    data = samples()
    data.tau[12, 1] = np.nan
    write_csv(tmp_path / "bad.csv", data)
    status, text = call("bad.csv")
    assert status == 1 and "tau of 'elbow' is nan in sample 12" in text
    status, text = call("dato.csv")
    assert status == 1 and "Did you mean 'data.csv'" in text


@pytest.mark.parametrize("method", ["forces", "simulation"])
def test_the_columns_of_a_fixed_joint_are_ignored(call, tmp_path, method):
    """A pendulum fitted to a record in which the elbow rests, which has the columns of the elbow too."""
    t, h, parts = np.arange(400) * 0.01, 0.01, ("q", "tau")
    q = np.column_stack([np.sin(3 * t), 0 * t])
    v, a = np.gradient(q, h, axis=0), -9 * q
    tau = zw.compile(TRUE).inverse_dynamics(q, np.column_stack([3 * np.cos(3 * t), 0 * t]), a)
    write_csv(tmp_path / "both.csv", zw.identify.Measurements(t, q, v, a, tau), parts)
    options = ["--fix", "elbow", "--kind", "inertia", "--method", method]
    status, text = call("both.csv", *options)
    assert status == 0, text
    write_csv(
        tmp_path / "one.csv", zw.identify.Measurements(t, q[:, :1], v, a, tau[:, :1]), parts, ("shoulder",)
    )
    assert call("one.csv", *options) == (status, text)
    status, text = call("one.csv", "--kind", "inertia")
    assert status == 1 and "there is no column 'q_elbow'" in text
    write_csv(tmp_path / "bent.csv", zw.identify.Measurements(t, q + np.array([0, 0.5]), v, a, tau), parts)
    status, text = call("bent.csv", *options)
    assert status == 1 and "'q_elbow' is 0.5 where its joint is fixed at 0" in " ".join(text.split())


def test_files_are_read_strictly(tmp_path):
    path = tmp_path / "d.csv"
    data = samples(count=200)
    write_csv(path, data)
    np.testing.assert_array_equal(zw.identify.read_csv(MODEL, path).tau, data.tau)
    text = path.read_text()
    path.write_text(text, encoding="utf-8-sig")  # as spreadsheets write it
    np.testing.assert_array_equal(zw.identify.read_csv(MODEL, path).tau, data.tau)
    for separator in (";", "\t"):
        path.write_text(text.replace(",", separator))
        np.testing.assert_array_equal(zw.identify.read_csv(MODEL, path).tau, data.tau)
    path.write_text("\n \n" + text)
    np.testing.assert_array_equal(zw.identify.read_csv(MODEL, path).tau, data.tau)
    path.write_text(text.replace(",", ";").replace(".", ","))
    with pytest.raises(
        LoadError, match=r"line 2: 'q_shoulder' is '.*,.*', which is no number; write a decimal point"
    ):
        zw.identify.read_csv(MODEL, path)
    rows = [f"{line},{'on' if k else 'switch'}" for k, line in enumerate(text.splitlines())]
    path.write_text("\n".join(rows))
    np.testing.assert_array_equal(zw.identify.read_csv(MODEL, path, ignore=["switch"]).tau, data.tau)
    for old, new, message in (
        ("q_elbow", "q_elbo", "column 'q_elbo' is unknown. Did you mean 'q_elbow'"),
        ("v_elbow", "q_elbow", "column 'q_elbow' occurs twice"),
        ("\n", "\nx,1,2,3,4,5,6,7,8\n", "line 2: 'time' is 'x', which is no number"),
        ("\n", "\n1,2\n", "line 2 has 2 values; the header has 9 columns"),
        ("time,", "tau_shoulder_,", "column 'tau_shoulder_' is unknown"),
        ("time,", "t,", "column 't' is unknown. There is no column 'time': give the times this name."),
        ("time,", ",", "column 1 of 9 has no name; pandas writes no such column with to_csv("),
        ("v_elbow", "switch", "column 'switch' is unknown. Leave it out by ignore=['switch']"),
        ("time,", "# time,", "line 1 is a comment, '# time'; leave such lines out (numpy.savetxt writes"),
        ("\n", "\n# 7 V\n", "line 2 is a comment, '# 7 V'; leave such lines out"),
        ("\n", "\n0,1,2,3,,5,6,7,8\n", "which is no number; leave such lines out, or interpolate the value"),
        ("\n", "\n0_1.01,1,2,3,4,5,6,7,8\n", "line 2: 'time' is '0_1.01', which is no number"),
    ):
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(LoadError, match=re.escape(message)):
            zw.identify.read_csv(MODEL, path)
    path.write_text(text)
    message = re.escape("ignore=['v_elbw'] names no column. Did you mean 'v_elbow'")
    with pytest.raises(LoadError, match=message):
        zw.identify.read_csv(MODEL, path, ignore=["v_elbw"])
    for other, message in (
        (text.replace(",", " "), "line 1: the columns are separated by spaces, 'time q_shoulder"),
        (text.replace(",", "|"), "line 1: the columns are separated by vertical bars"),
        (text.replace("\n", ",\n"), "column 10 of 10 has no name; leave out separators at the ends of lines"),
        (text.replace("\n", ",,\n"), "line 1: columns 10, 11 of 11 have no names"),
        ("\n".join(x + "," * (k > 0) for k, x in enumerate(text.splitlines())),
         "line 2 has 10 values; the header has 9 columns, and the line ends with a separator"),
        ("% of Monday\n" + text, "line 1 is a comment, '% of Monday'; leave such lines out"),
    ):  # fmt: skip
        path.write_text(other)
        with pytest.raises(LoadError, match=re.escape(message)):
            zw.identify.read_csv(MODEL, path)
    path.write_text(text.replace("\n", ",\n"))
    np.testing.assert_array_equal(zw.identify.read_csv(MODEL, path, ignore=[""]).tau, data.tau)
    write_csv(path, data, ("q", "v"))
    with pytest.raises(LoadError, match="there is no column 'tau_shoulder'"):
        zw.identify.read_csv(MODEL, path)


def test_joints_are_fixed():
    m = MODEL.replace(forces=[zw.Motor("m", "elbow"), zw.Damper("shoulder", 1.0)])
    fixed = zw.identify.with_fixed_joints(m, ["elbow"])
    assert [j.name for j in fixed.joints] == ["shoulder"] and len(fixed.forces) == 1
    q, v, a = [0.3], [1.0], [0.5]
    expected = zw.inverse_dynamics(m, [0.3, 0], [1, 0], [0.5, 0])[0]
    np.testing.assert_allclose(zw.inverse_dynamics(fixed, q, v, a), expected)


def test_what_involves_a_fixed_joint_is_left_out():
    """By name, by the symbols of formulas, and by the constraint whose friction it is; the rest is kept."""

    def body(name: str, parent: str) -> zw.Body:
        return zw.Body(name, zw.Revolute(name, axis=(0, 1, 0)), parent=parent, mass=1, com=(0.1, 0, 0),
                       inertia=(0.1, 0.1, 0.1))  # fmt: skip

    a, b, c = sp.symbols("a b c")
    involved = [
        zw.JointCoupling("j", "b", "a"),
        zw.Holonomic("h", a - b),
        zw.Pfaffian("p", {"a": 1, "b": 1}),
        zw.Pfaffian("r", {"b": sp.cos(a), "c": 1}),
        zw.CoulombFriction("f", 0.1, constraint="h", sliding={"b": 1}),
        zw.CoulombFriction("g", 0.1 + a**2, joint="b", radius=0.1),
    ]
    kept = [zw.Holonomic("k", b - c), zw.CoulombFriction("l", 0.1 + b**2, joint="b", radius=0.1)]
    m = zw.Mechanism("r", [body("a", "world"), body("b", "a"), body("c", "b")], home=(0.1, 0.2, 0.3),
                     constraints=[*involved, *kept], forces=[zw.Spring("b", 1.0, relative_to="a")],
                     sensors=[zw.FrameSensor("s", "position", "c", relative_to="a")])  # fmt: skip
    fixed = zw.identify.with_fixed_joints(m, ["a"])
    assert fixed.constraints == tuple(kept) and fixed.forces == () and fixed.symbols == ()
    assert fixed.home == (0.2, 0.3) and len(fixed.sensors) == 1  # relative to the body a
