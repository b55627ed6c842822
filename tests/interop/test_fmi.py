"""Exported FMUs, read, validated and simulated by FMPy, equal zwang's own simulations."""

import shutil
import zipfile

import fmpy
import numpy as np
import pytest
from fmpy.fmi3 import FMU3Model, FMU3Slave
from fmpy.validation import validate_fmu
from scipy.integrate import solve_ivp

import zwang as zw
from tests.api.test_sensor_derivatives import limited_arm
from tests.interop.cases import arm_on_a_ball, central_differences
from tests.interop.exported_models import MODELS, PARAMS, SOFT, arm, dropped, servo, woken
from zwang.errors import CompileError, FormatError, MissingExtraError
from zwang.interop import c_compiler, fmi
from zwang.mechanism.samples import FURUTA, four_bar, furuta

pytestmark = pytest.mark.needs("cc")


class Unit:
    """An exported FMU with an instance of one kind."""

    def __init__(self, path, kind=FMU3Slave):
        self.description = fmpy.read_model_description(str(path))
        self.reference = {x.name: x.valueReference for x in self.description.modelVariables}
        folder = path.with_suffix("")
        self.folder = str(folder) if folder.exists() else fmpy.extract(str(path), str(folder))
        self.fmu = kind(
            guid=self.description.guid,
            unzipDirectory=self.folder,
            modelIdentifier=self.description.coSimulation.modelIdentifier,
            instanceName="one",
        )
        self.messages = []
        self.fmu.instantiate(logMessage=lambda *arguments: self.messages.append(arguments[-1]))

    def start(self, time=0.0, **values):
        self.set(**values)
        self.fmu.enterInitializationMode(startTime=time)
        self.fmu.exitInitializationMode()
        return self

    def set(self, **values):
        for name, value in values.items():
            self.fmu.setFloat64([self.reference[name.replace("__", ".")]], [value])

    def get(self, *names):
        return np.array(self.fmu.getFloat64([self.reference[name] for name in names]))

    def named(self, prefix):
        return self.get(*(name for name in self.reference if name.startswith(prefix)))

    def derivatives(self, t, y):
        self.fmu.setTime(t)
        states, rates = (np.ascontiguousarray(x, float) for x in (y, np.zeros(len(y))))
        pointers = [x.ctypes.data_as(fmpy.fmi3.POINTER(fmpy.fmi3.fmi3Float64)) for x in (states, rates)]
        self.fmu.setContinuousStates(pointers[0], len(y))
        self.fmu.getContinuousStateDerivatives(pointers[1], len(y))
        return rates


H = 0.01  # the step of models in which only a few are made [s]
MORE = {
    "sleep": (lambda: woken(zw.Sphere), {}),
    "ball": (arm_on_a_ball, {"params": {"payload": 0.7}}),
    "servo": (servo, {"q0": "up"}),
    "limited arm by Euler": (limited_arm, {"step": H, "integrator": "euler"}),
    "limited arm by Runge-Kutta": (limited_arm, {"step": H, "integrator": "rk4"}),
    "loop by Baumgarte": (
        lambda: four_bar().replace(sensors=[zw.SiteSensor("acc", "accelerometer", "coupler")]),
        {"step": H, "stabilization": "baumgarte"},
    ),
}
"""Models of single tests or smaller ones of their name, with the settings of their export."""


class Exports:
    """The FMU of a model, made once, and the report of its export."""

    def __init__(self, folders):
        self.folders, self.made = folders, {}

    def __call__(self, name):
        """The path of the FMU."""
        if name not in self.made:
            path = self.folders.mktemp("fmu") / f"{len(self.made)}.fmu"
            make, settings = MORE.get(name) or (MODELS[name], {"params": PARAMS.get(name)})
            self.made[name] = path, zw.export(make(), path, **settings)
        return self.made[name][0]

    def report(self, name):
        self(name)
        return str(self.made[name][1])


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    return Exports(tmp_path_factory)


CONTINUOUS = ["furuta", "symbols", "arm", "soft contact"]


@pytest.mark.parametrize("model", [name for name in MODELS if name != "impacts"])
def test_the_validator_reports_nothing(model, exported):
    assert validate_fmu(str(exported(model))) == []
    description = fmpy.read_model_description(str(exported(model)))
    assert (description.modelExchange is not None) == (model in CONTINUOUS)
    text = zipfile.ZipFile(exported(model)).read("modelDescription.xml").decode()
    assert ('providesDirectionalDerivatives="true"' in text) == (model in ("furuta", "symbols"))
    assert description.coSimulation.fixedInternalStepSize is not None


@pytest.mark.parametrize("model", ["furuta", "symbols", "arm", "soft contact", "loop", "time"])
def test_co_simulation_by_fmpy_has_the_bits_of_simulate(model, exported):
    m, params = MODELS[model](), PARAMS.get(model)
    inputs = m.inputs or m.speed_names
    u = np.linspace(0.2, 0.4, len(inputs))
    run = zw.simulate(m, duration=0.3, control=u, params=params)
    given = {f"control.{name}": x for name, x in zip(inputs, u, strict=True)}
    names = [f"q.{name}" for name in m.coordinate_names] + [f"v.{name}" for name in m.speed_names]
    names += [x.name for x in fmpy.read_model_description(str(exported(model))).modelVariables
              if x.name.startswith("activation")]  # fmt: skip
    found = fmpy.simulate_fmu(
        str(exported(model)), fmi_type="CoSimulation", stop_time=0.3, start_values=given, output=names,
        step_size=0.002, output_interval=0.002,
    )  # fmt: skip
    state = np.concatenate([run.q.values[0], run.v.values[0]], axis=-1)
    states = np.stack([found[name] for name in names], axis=-1)
    np.testing.assert_array_equal(states[:, : m.nq + m.nv], state)
    np.testing.assert_allclose(found["time"], run.time.values, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("model", ["furuta", "arm", "soft contact"])
def test_model_exchange_equals_an_accurate_integration(model, exported):
    """The derivatives of the FMU, integrated to 1e-12, against those of zwang on floats."""
    m = MODELS[model]()
    inputs = m.inputs or m.speed_names
    u = np.linspace(0.2, 0.4, len(inputs))
    unit = Unit(exported(model), FMU3Model).start(
        **{f"control__{name}".replace(".", "__"): x for name, x in zip(inputs, u, strict=True)}
    )
    y0 = np.concatenate([unit.named("q."), unit.named("v."), unit.named("activation.")])
    end = 0.15
    tight = {"rtol": 1e-12, "atol": 1e-13}
    found = solve_ivp(unit.derivatives, (0, end), y0, "DOP853", **tight).y[:, -1]
    run = zw.simulate(m, duration=end, step=0.002, control=u, integrator=zw.Adaptive("dop853", **tight))
    expected = np.concatenate([run.q.values[0, -1], run.v.values[0, -1]])
    for j in m.joints:
        if j.kind in ("ball", "free"):
            part = slice(j.q.stop - 4, j.q.stop)
            found[part] /= np.linalg.norm(found[part])
    np.testing.assert_allclose(found[: m.nq + m.nv], expected, rtol=0, atol=1e-9)


def test_model_exchange_by_fmpy_follows_the_motion(exported):
    m = furuta(**FURUTA)
    found = fmpy.simulate_fmu(
        str(exported("furuta")), fmi_type="ModelExchange", stop_time=0.5, relative_tolerance=1e-8,
        start_values={"q.alpha": 0.3}, output=["q.theta", "q.alpha"], output_interval=0.5,
    )  # fmt: skip
    accurate = zw.Adaptive("dop853", rtol=1e-12, atol=1e-12)
    run = zw.simulate(m, {"alpha": 0.3}, duration=0.5, step=0.5, integrator=accurate)
    last = [found[name][-1] for name in ("q.theta", "q.alpha")]
    np.testing.assert_allclose(last, run.q.values[0, -1], atol=2e-5)


@pytest.mark.parametrize("model", ["symbols"])
def test_directional_and_adjoint_derivatives(model, exported):
    """Against central differences of the FMU's own derivatives and outputs."""
    unit = Unit(exported(model), FMU3Model).start()
    states = [name for name in unit.reference if name.startswith(("q.", "v."))]
    knowns = [*states, "control.tau", "parameter.m_p"]
    unknowns = [name for name in unit.reference if name.startswith(("der(", "frame."))] + ["q.alpha"]
    rows, columns = ([unit.reference[name] for name in names] for names in (unknowns, knowns))
    y = np.array([0.4, 0.7, -1.1, 0.5])
    point = np.array([*y, 0.3, 0.03])

    def evaluated(x):
        unit.set(control__tau=x[4], parameter__m_p=x[5])
        unit.derivatives(0.0, x[:4])
        return unit.get(*unknowns)

    def difference(k, h):
        return (evaluated(point + h * np.eye(6)[k]) - evaluated(point - h * np.eye(6)[k])) / (2 * h)

    J = np.stack([(4 * difference(k, 5e-5) - difference(k, 1e-4)) / 3 for k in range(6)], axis=1)
    evaluated(point)
    seeds = np.eye(6)
    exact = np.stack([unit.fmu.getDirectionalDerivative(rows, columns, seed) for seed in seeds], axis=1)
    np.testing.assert_allclose(exact, J, rtol=1e-7, atol=1e-6)
    for k, seed in enumerate(np.eye(len(rows))):
        adjoint = unit.fmu.getAdjointDerivative(rows, columns, seed, len(columns))
        np.testing.assert_array_equal(adjoint, exact[k])
    with pytest.raises(fmpy.fmi1.FMICallException):
        unit.fmu.getDirectionalDerivative([unit.reference["time"]], columns, seeds[0])
    assert "no derivative" in unit.messages[-1].decode()


@pytest.mark.parametrize("length", [1.0, 1.3])
def test_derivatives_by_the_elements_of_a_quaternion(length, exported):
    """All outputs are functions of the normalised quaternion, whose length an integrator does not keep."""
    unit = Unit(exported("ball"), FMU3Model).start()
    states = [name for name in unit.reference if name.startswith(("q.", "v."))]
    unknowns = [name for name in unit.reference if name.startswith(("der(", "sensor.", "frame."))]
    y = np.random.default_rng(0).normal(size=len(states))
    y[:4] *= length / np.linalg.norm(y[:4])

    def evaluated(x):
        unit.derivatives(0.0, x)
        return unit.get(*unknowns)

    J = central_differences(evaluated, y)
    evaluated(y)
    rows, columns = ([unit.reference[name] for name in names] for names in (unknowns, states))
    exact = [unit.fmu.getDirectionalDerivative(rows, columns, seed) for seed in np.eye(len(states))]
    np.testing.assert_allclose(np.transpose(exact), J, rtol=0, atol=1e-6 * np.abs(J).max())


@pytest.mark.parametrize("model", ["arm", "soft contact"])
def test_outputs_are_sensors_and_positions_of_frames(model, exported):
    m = MODELS[model]()
    unit = Unit(exported(model)).start()
    fast = zw.compile(m)
    for _ in range(3):
        q, v, z = unit.named("q."), unit.named("v."), unit.named("activation.")
        t = unit.get("time")[0]
        expected = fast.sensors(q, v, None, z, t)
        np.testing.assert_array_equal(unit.named("sensor."), np.concatenate([*expected.values()]))
        for frame in [f.name for f in m.frames or m.bodies]:
            np.testing.assert_array_equal(unit.named(f"frame.{frame}."), fast.frame_pose(q, frame).p)
        unit.fmu.doStep(t, 0.02)


@pytest.mark.parametrize("model", ["limited arm by Euler", "limited arm by Runge-Kutta", "loop by Baumgarte"])
def test_sensors_are_those_of_the_exported_step(model, exported):
    names = [f"sensor.acc.{axis}" for axis in "xyz"]
    found = fmpy.simulate_fmu(
        str(exported(model)), fmi_type="CoSimulation", stop_time=20 * H, output_interval=H, output=names
    )
    make, settings = MORE[model]
    run = zw.simulate(make(), duration=20 * H, record={"sensors": True}, progress=False, **settings)
    np.testing.assert_array_equal(np.stack([found[name] for name in names], axis=-1), run.sensor.values[0])


def test_sensors_of_model_exchange_belong_to_the_derivatives(exported):
    """The tip of an arm on a hinge: a_z = g cos(h) - r h''."""
    unit = Unit(exported("limited arm by Euler"), FMU3Model).start(v__h=0.1)
    rate, a_z = unit.get("der(v.h)", "sensor.acc.z")
    assert abs(rate) > 10 and a_z == pytest.approx(9.81 * np.cos(0.203) - 0.3 * rate, rel=1e-12)


def test_activations_of_model_exchange_stay_within_their_range(tmp_path):
    """m a = g z with |z| <= 0.4 and z' = u, but 0 outwards at an end."""
    body = zw.Body("b", zw.Prismatic("x", (1, 0, 0)), mass=2)
    drive = zw.Actuator("f", "x", gain=(3, 0, 0), activation=("integrator", ()), activation_range=(-0.4, 0.4))
    force = zw.ActuatorSensor("force", "force", "f")
    zw.export(zw.Mechanism("m", [body], forces=[drive], sensors=[force]), tmp_path / "a.fmu")
    unit = Unit(tmp_path / "a.fmu", FMU3Model)
    unit.start(activation__f=0.5, control__f=0.8)
    assert unit.get("der(v.x)", "der(activation.f)", "sensor.force") == pytest.approx([0.6, 0, 1.2])
    unit.set(control__f=-0.8)
    assert unit.get("der(v.x)", "der(activation.f)", "sensor.force") == pytest.approx([0.6, -0.8, 1.2])


@pytest.mark.parametrize("kind", [FMU3Slave, FMU3Model])
def test_a_keyframe_also_gives_the_control(kind, exported):
    """Also after a reset; in model exchange J a = k (u - q) + m g r cos(q)."""
    m = servo()
    unit = Unit(exported("servo"), kind).start()
    assert {x.name: x.start for x in unit.description.modelVariables}["control.p"] == "0.7"
    run = zw.simulate(m, "up", duration=0.1, progress=False)
    for _ in range(2):
        assert unit.get("q.j", "v.j", "control.p").tolist() == [0.5, 1.0, 0.7]
        if kind is FMU3Slave:
            unit.fmu.doStep(0.0, 0.1)
            assert unit.get("q.j")[0] == run.q.values[0, -1, 0]
        else:
            a = (30 * (0.7 - 0.5) + 9.81 * 0.2 * np.cos(0.5)) / (0.004 + 0.2**2)
            assert unit.derivatives(0.0, [0.5, 1.0])[1] == pytest.approx(a, rel=1e-12)
        unit.set(control__p=0.1)
        unit.fmu.reset()
        unit.start()


def test_without_a_keyframe_the_control_is_zero(tmp_path):
    zw.export(servo(), tmp_path / "rest.fmu", q0=[0.5])
    assert Unit(tmp_path / "rest.fmu").start().get("control.p")[0] == 0


def test_parameters_are_tunable_between_steps(exported):
    fast, unit = zw.compile(MODELS["symbols"]()), Unit(exported("symbols")).start(q__alpha=0.3)
    q, v = np.array([0.0, 0.3]), np.zeros(2)
    for k, mass in enumerate([0.03, 0.03, 0.05, 0.01]):
        unit.set(parameter__m_p=mass)
        unit.fmu.doStep(0.002 * k, 0.002)
        q, v, _ = fast.step(q, v, [0.0], params={"m_p": mass, "L_r": 0.1})
        np.testing.assert_array_equal([unit.named("q."), unit.named("v.")], [q, v])


def test_a_state_can_be_saved_restored_and_serialised(exported):
    unit = Unit(exported("soft contact")).start()
    unit.fmu.doStep(0.0, 0.1)
    saved = unit.fmu.getFMUState()
    content = unit.fmu.serializeFMUState(saved)
    ends = []
    for restore in (lambda: None, lambda: saved, lambda: unit.fmu.deserializeFMUState(content)):
        state = restore()
        if state is not None:
            unit.fmu.setFMUState(state)
        unit.fmu.doStep(0.1, 0.1)
        ends.append(unit.named("q.").tobytes())
    assert len(set(ends)) == 1
    unit.fmu.freeFMUState(saved)
    unit.fmu.reset()
    unit.start()
    unit.fmu.doStep(0.0, 0.2)
    assert unit.named("q.").tobytes() == ends[0]


@pytest.mark.parametrize(
    ("point", "size", "message"),
    [(0.0, 0.003, "multiple"), (0.0, 0.0, "multiple"), (0.01, 0.002, "communication point")],
)
def test_a_step_that_the_model_cannot_make_is_an_error(point, size, message, exported):
    unit = Unit(exported("furuta")).start()
    with pytest.raises(fmpy.fmi1.FMICallException):
        unit.fmu.doStep(point, size)
    assert message in unit.messages[-1].decode()


def test_an_importer_may_add_up_the_communication_points(exported):
    h, count = 0.002, 400_000
    unit = Unit(exported("furuta")).start()
    unit.fmu.doStep(0.0, count * h)
    added = np.add.accumulate(np.full(count, h))[-1]
    assert abs(added - count * h) > 1e-6 * h
    unit.fmu.doStep(added, h)
    assert unit.get("time")[0] == (count + 1) * h
    with pytest.raises(fmpy.fmi1.FMICallException):
        unit.fmu.doStep(added + 1.01 * h, h)


def test_errors_have_messages(exported):
    unit = Unit(exported("furuta")).start()
    for name, value in (("q.alpha", 1.0), ("time", 1.0), ("frame.arm.x", 0.0)):
        with pytest.raises(fmpy.fmi1.FMICallException):
            unit.fmu.setFloat64([unit.reference[name]], [value])
    with pytest.raises(fmpy.fmi1.FMICallException):
        unit.fmu.getFloat64([9999])
    unit.set(control__tau=np.nan)
    with pytest.raises(fmpy.fmi1.FMICallException):
        unit.fmu.doStep(0.0, 0.002)
    texts = b"\n".join(unit.messages).decode()
    assert "until the initialisation ends" in texts and "control is not a finite number" in texts
    assert "cannot be set" in texts and "value reference" in texts


def test_quaternions_that_are_set_get_unit_length(exported):
    unit = Unit(exported("soft contact")).start(**{"q__base__qw": 3.0, "q__base__qx": 4.0})
    q = unit.named("q.")
    np.testing.assert_allclose(np.linalg.norm(q[3:]), 1, rtol=1e-15)
    zero = {f"q__base__q{x}": 0.0 for x in "wxyz"}
    with pytest.raises(fmpy.fmi1.FMICallException):
        Unit(exported("soft contact")).start(**zero)


def test_a_mechanism_that_depends_on_time_starts_at_a_multiple_of_the_step(exported):
    unit = Unit(exported("time"))
    with pytest.raises(fmpy.fmi1.FMICallException):
        unit.start(time=0.0005)
    assert "multiple" in unit.messages[-1].decode()


def test_equal_mechanisms_have_equal_files_and_sources_are_inside(exported, tmp_path):
    zw.export(furuta(**FURUTA), tmp_path / "again.fmu")
    assert (tmp_path / "again.fmu").read_bytes() == exported("furuta").read_bytes()
    names = set(zipfile.ZipFile(exported("furuta")).namelist())
    assert {f"sources/{name}" for name in ("furuta.c", "furuta.h", "fmi3.c", "buildDescription.xml")} <= names


def test_a_mechanism_may_have_the_name_of_a_source(tmp_path):
    body = zw.Body("bob", joint=zw.Revolute("hinge", axis=(0, 1, 0)), mass=1.0, com=(0, 0, -1))
    zw.export(zw.Mechanism("fmi3", [body]), tmp_path / "a.fmu")
    unit = Unit(tmp_path / "a.fmu").start(q__hinge=0.1)
    unit.fmu.doStep(0.0, 0.002)
    assert 0 < unit.get("q.hinge")[0] < 0.1


def test_hostile_names_are_escaped(tmp_path):
    evil = 'a<b>&"\x01\n\u202e*/'
    body = zw.Body(evil, joint=zw.Revolute(evil + "1", axis=(0, 1, 0)), mass=1.0, com=(0, 0, -1))
    m = zw.Mechanism(evil, [body], forces=[zw.Motor(evil + "2", evil + "1")])
    zw.export(m, tmp_path / "evil.fmu")
    assert validate_fmu(str(tmp_path / "evil.fmu")) == []
    names = [x.name for x in fmpy.read_model_description(str(tmp_path / "evil.fmu")).modelVariables]
    assert all(name.isprintable() for name in names) and len(set(names)) == len(names)


def test_model_exchange_with_hard_constraints_needs_their_stabilisation(exported):
    assert "baumgarte" in exported.report("loop")
    assert "baumgarte" not in exported.report("loop by Baumgarte")
    description = fmpy.read_model_description(str(exported("loop by Baumgarte")))
    assert description.modelExchange is not None


def test_refusals(tmp_path, monkeypatch):
    m = dropped(SOFT)
    for more in ({"dtype": "float32"}, {"functions": ["step"]}):
        with pytest.raises(FormatError, match=next(iter(more))):
            zw.export(m, tmp_path / "a.fmu", **more)
    monkeypatch.setattr(fmi, "c_compiler", lambda: ["false"])
    if shutil.which("false"):
        with pytest.raises(CompileError, match="false"):
            zw.export(arm(), tmp_path / "a.fmu")
    monkeypatch.undo()
    monkeypatch.setattr(c_compiler.shutil, "which", lambda name: None)
    monkeypatch.setattr(c_compiler, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="pip install 'zwang"):
        zw.export(m, tmp_path / "a.fmu")
    assert not list(tmp_path.iterdir())
