"""K, B, impedance, R and aref from solref and solimp, against MuJoCo's values and the identity of a soft
row.
"""

import mujoco
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import zwang as zw
from tests.cases import references
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.interpreter import interpret
from zwang.constraint.softness import impedance, reference, regularisation, response, soft_rows
from zwang.integrator.fixed_step import State
from zwang.io.mjcf.solver_parameters import softness_of
from zwang.mechanism.joints import Softness
from zwang.simulation.step import step, step_settings

ROWS = references("softness", "A09_mujoco_solref_solimp")
FORCE_TYPE = {
    "limit": "limit",
    "equality_joint": "equality",
    "frictionloss": "friction",
    "connect": "equality",
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["kind"])
def test_stiffness_damping_and_impedance_are_mujocos(row):
    shortest = 2 * row["timestep"] if row["refsafe"] else 0
    solref, slip = row["solref"], row["solreffriction"]
    r = np.array(row["efc_pos"]) - row["efc_margin"]
    size = np.linalg.norm(r) if row["kind"] == "connect" else r[0]
    for j, (K, B, d, _) in enumerate(row["efc_KBIP"]):
        slipping = row["kind"] == "contact" and row["cone"] == "elliptic" and j > 0
        ours = reference(slip if slipping and slip and any(slip) else solref, row["solimp"], shortest)
        without_stiffness = row["kind"] == "frictionloss" or slipping
        assert (0 if without_stiffness else ours[0]) == pytest.approx(K, rel=1e-12, abs=1e-12)
        assert ours[1] == pytest.approx(B, rel=1e-12, abs=1e-12)
        assert impedance(row["solimp"], size) == pytest.approx(d, rel=1e-12)
        aref = -ours[1] * row["efc_vel"][j] - (0 if without_stiffness else ours[0]) * d * r[j]
        assert aref == pytest.approx(row["efc_aref"][j], rel=1e-10, abs=1e-10)


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if not isinstance(row, dict) or row["kind"] in FORCE_TYPE],
    ids=lambda row: row["kind"],
)
def test_soft_rows_have_mujocos_regularisation(row):
    n = len(row["efc_pos"])
    size = np.linalg.norm(row["efc_pos"]) if row["kind"] == "connect" else None
    softness = softness_of(row["solref"], row["solimp"])
    inverse_weight = row["body_invweight0"][0] if row["kind"] == "connect" else row["dof_invweight0"]
    rows = soft_rows(
        "row", FORCE_TYPE[row["kind"]], np.diag(row["efc_vel"]), np.ones(n), row["efc_pos"], softness,
        inverse_weight=inverse_weight, margin=row["margin"] or 0, violation=size,
        shortest_time=2 * row["timestep"] if row["refsafe"] else 0,
    )  # fmt: skip
    np.testing.assert_allclose(rows.R.astype(float), row["efc_R"], rtol=1e-10)
    np.testing.assert_allclose(rows.D.astype(float), row["efc_D"], rtol=1e-10)
    np.testing.assert_allclose(rows.aref.astype(float), row["efc_aref"], rtol=1e-10, atol=1e-10)


# formulas of their own: no width, equal impedances, a linear course, a mixture of both formats of solref
SPECIAL = [
    ((0.05, 0.8), (0.4, 0.9, 0.0, 0.5, 2.0)),
    ((0.05, 0.8), (0.6, 0.6, 0.01, 0.5, 2.0)),
    ((0.05, 0.8), (0.4, 0.9, 0.01, 0.3, 1.0)),
    ((0.05, 0.8), (0.4, 0.9, 0.01, 0.3, 2.5)),
    ((-300.0, -20.0), (0.4, 0.9, 0.01, 0.3, 3.0)),
    ((-300.0, 0.5), (0.4, 0.9, 0.01, 0.3, 2.0)),
    ((0.05, -20.0), (0.4, 0.9, 0.01, 0.3, 2.0)),
]


def test_special_softness_is_mujocos_as_numbers_and_traced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # for the warning of a mixture, which MuJoCo writes to a file
    program = trace(lambda s, i, r: [*reference(s, i), impedance(i, r)], {"solref": 2, "solimp": 5, "r": ()})
    for solref, solimp in SPECIAL:
        for r in (0.0, 0.002, -0.006, 0.5):
            expected = mujoco_response(solref, solimp, r)
            found = [*reference(solref, solimp), impedance(solimp, r)]
            np.testing.assert_allclose(np.array(found, float), expected, rtol=1e-12)
            traced = interpret(program, {"solref": [solref], "solimp": [solimp], "r": [[r]]})["out"][0]
            np.testing.assert_allclose(traced, expected, rtol=1e-12)


def mujoco_response(solref, solimp, r):
    """K, B and d of a joint equality at the violation r."""
    numbers = [" ".join(map(str, x)) for x in (solref, solimp)]
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><option><flag refsafe='disable'/></option><worldbody><body><joint name='z' type='slide'/>"
        "<geom size='0.1'/></body></worldbody><equality><joint joint1='z' polycoef='0 0 0 0 0' "
        f"solref='{numbers[0]}' solimp='{numbers[1]}'/></equality></mujoco>"
    )
    data = mujoco.MjData(model)
    data.qpos[0] = r
    mujoco.mj_forward(model, data)
    return data.efc_KBIP.reshape(-1, 4)[0, :3]


def test_contact_parameters_that_are_symbols_act_as_their_numbers():
    """Of two surfaces that are mixed; among the values are those for which a formula has special cases."""
    names = "solmix first second d0 dw width midpoint power".split()
    fast = zw.compile(on_floor(*sp.symbols(names, real=True)))
    q, v, none = [0.0995, 0.098], [-0.1, 0.2], [0.0, 0.0]
    for values in (
        (0.0, 0.02, 1.0, 0.9, 0.95, 0.001, 0.5, 2.0),
        (1.0, 0.02, 1.0, 0.9, 0.9, 0.001, 0.5, 1.0),
        (1.0, 0.05, 1.0, 0.8, 0.95, 0.0, 0.5, 2.0),
        (3.0, -500.0, -30.0, 0.8, 0.95, 0.01, 0.3, 2.5),
    ):
        found = fast.step(q, v, none, step=0.002, params=dict(zip(names, values, strict=True)))
        floats = step_settings(on_floor(*values), 0.002)
        expected = step(floats, State(np.array(q), np.array(v), np.zeros(0)), np.array(none), 0).state
        np.testing.assert_allclose(found.v, np.array(expected.v, float), rtol=1e-9)


def on_floor(solmix, first, second, *solimp):
    """Two balls on slides above a floor with another softness."""
    own = zw.Surface(solmix=solmix, solref=(first, second), solimp=solimp)
    floor = zw.Plane(surface=zw.Surface(solmix=0.0, solref=(0.03, 0.8), solimp=solimp))
    bodies = [
        zw.Body(name, joint=zw.Prismatic(name), mass=mass, geometry=[zw.Sphere(radius=0.1, surface=own)])
        for name, mass in (("light", 1.0), ("heavy", 2.0))
    ]
    return zw.Mechanism(bodies=bodies, geometry=[floor])


numbers = st.floats(0.01, 0.99)


@settings(max_examples=40, deadline=None)
@given(
    d0=numbers,
    dw=numbers,
    r=st.floats(-0.02, 0.02),
    v=st.floats(-2, 2),
    a0=st.floats(-50, 50),
    A=st.floats(0.01, 100),
)
def test_the_acceleration_of_a_single_soft_row(d0, dw, r, v, a0, A):
    """a1 + d (b v + k r) = (1 - d) a0. Source: MuJoCo documentation, Modeling, "Solver parameters"."""
    soft = response(Softness((0.05, 0.7), (d0, dw, 0.01, 0.4, 3)), r)
    aref = -soft.B * v - soft.K * soft.d * r
    R = regularisation(soft.d, A)
    force = (aref - a0) / (A + R)
    a1 = a0 + A * force
    b, k = soft.B, soft.K * soft.d
    scale = max(1, abs(a0), abs(b * v), abs(k * r))
    assert abs(a1 + soft.d * (b * v + k * r) - (1 - soft.d) * a0) < 1e-12 * scale


def test_impedance_is_continuous_at_the_midpoint_and_flat_outside():
    solimp = (0.3, 0.8, 0.01, 0.3, 2.5)
    below, above = impedance(solimp, 0.003 - 1e-12), impedance(solimp, 0.003 + 1e-12)
    assert below == pytest.approx(above, abs=1e-9)
    assert impedance(solimp, 0) == 0.3
    assert impedance(solimp, 5.0) == pytest.approx(0.8)


SOFT = Softness((0.05, 0.7), (0.3, 0.8, 0.01, 0.4, 3))


def slider(kind):
    """A mass with one soft row along z, for which the approximate diagonal of A is exact."""
    limits = (0.0, 9.0) if kind == "limit" else None
    up = zw.Prismatic("z", limits=limits, limit_softness=SOFT)
    joints = (zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("y", axis=(0, 1, 0)), up)
    material = zw.Surface(condim=1, solref=SOFT.solref, solimp=SOFT.solimp)
    shapes = [zw.Sphere(radius=0.1, surface=material)] if kind == "contact" else []
    return zw.Mechanism(
        bodies=[zw.Body("mass", joint=joints, mass=2.5, geometry=shapes)],
        gravity=(0, 0, 0),
        geometry=[zw.Plane(position=(0, 0, -0.1), surface=material)],
        constraints=[zw.JointCoupling("fixed", "z", coefficients=(0,), softness=SOFT)] * (kind == "equality"),
    )


@settings(max_examples=20)
@given(
    r=st.floats(-0.02, -1e-6),
    v=st.floats(-2, 2),
    pull=st.floats(-90, 90),
    kind=st.sampled_from(["limit", "equality", "contact"]),
)
def test_the_acceleration_of_a_mechanism_with_one_soft_row(r, v, pull, kind):
    """a1 + d (b v + k r) = (1 - d) a0, with k the stiffness times d, while the row is active, else a1 =
    a0.
    """
    found = zw.constrained_dynamics(slider(kind), [0, 0, r], [0, 0, v], [0, 0, pull])
    soft, a0 = response(SOFT, r), pull / 2.5
    aref = -soft.B * v - soft.K * soft.d * r
    a1 = soft.d * aref + (1 - soft.d) * a0
    expected = a1 if kind == "equality" or aref > a0 else a0
    assert found.acceleration[2] == pytest.approx(expected, abs=1e-12 * max(1, abs(a0), abs(aref)))


STATIC_LOOPS = {
    "weld": "<weld body1='post' body2='world' relpose='0.9 0 0 1 0 0 0'/>",
    "connect": "<connect site1='top' site2='origin'/>",
}


@pytest.mark.parametrize("loop", STATIC_LOOPS)
def test_a_soft_loop_between_parts_that_cannot_move_has_no_force(loop, tmp_path):
    """A force sensor of a fixed post measures its weight; the loop that follows keeps its own force."""
    path = tmp_path / "post.xml"
    path.write_text(
        "<mujoco><worldbody><site name='origin' pos='0.9 0.1 0.2'/><body><joint axis='0 1 0'/>"
        "<geom size='0.1' pos='0 0 -1'/><site name='tip' pos='0 0 -1'/></body><body name='post' pos='1 0 0'>"
        "<inertial pos='0 0 0' mass='2' diaginertia='0.1 0.1 0.1'/><site name='top' pos='0 0 0.1'/></body>"
        f"</worldbody><equality>{STATIC_LOOPS[loop]}<connect site1='tip' site2='origin'/></equality>"
        "<sensor><force name='f' site='top'/><torque name='t' site='top'/></sensor></mujoco>"
    )
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    mechanism = zw.load(path)
    found = zw.sensors(mechanism, [0.0], [0.0])
    for name in ("f", "t"):
        np.testing.assert_allclose(found[name], data.sensor(name).data, atol=1e-9)
    second = mechanism.constraints[1].name
    forces = zw.constrained_dynamics(mechanism, [0.0], [0.0], [0.0]).forces
    assert list(forces) == [second]
    wanted = {"sensors": True, "multipliers": True}
    run = zw.simulate(mechanism, duration=0.002, record=wanted, progress=False)
    np.testing.assert_allclose(run.sensor[0, 0], data.sensordata, atol=1e-9)
    of = run.constraint_row.values.astype(str)
    rows = [k for k, name in enumerate(of) if name.startswith(second)]
    np.testing.assert_allclose(run.multiplier[0, 0, rows], forces[second], rtol=1e-9)
    np.testing.assert_allclose(np.delete(run.multiplier[0, 0], rows), 0)


def test_a_soft_rolling_constraint_between_parts_that_cannot_move_has_no_force():
    """A ball whose height above the plane is not its radius."""
    arm = zw.Body("arm", zw.Revolute("j"), mass=1, inertia=(0.1, 0.1, 0.1))
    rolling = zw.Rolling("rolling", "ball", radius=0.4, softness=SOFT)
    mechanism = zw.Mechanism(bodies=[arm, zw.Body("ball", position=(0, 0, 1))], constraints=[rolling])
    assert zw.constrained_dynamics(mechanism, [0], [0], [0]).forces == {}
    run = zw.simulate(mechanism, duration=0.002, record={"forces": True}, progress=False)
    np.testing.assert_array_equal(run.force, 0)
