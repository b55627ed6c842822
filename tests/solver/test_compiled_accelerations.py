"""The constrained acceleration, compiled with worlds in lanes, against the same functions on floats and
MuJoCo.
"""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

import zwang as zw
from tests.cases import case
from zwang.compiler.frontend.trace import trace
from zwang.compiler.pipeline import optimise
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.dynamics.generalised_forces import passive_forces
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.simulation.constrained import solve_constrained


def compiled(mechanism, solver="newton"):
    """q, v, tau (worlds, n) to the accelerations (worlds, nv)."""

    def accelerations(q, v, tau):
        found = solve_constrained(mechanism, q, v, tau + passive_forces(mechanism, q, v), solver=solver)
        return {"a": np.array(found.solution.acceleration)}

    n = mechanism.nv
    program = optimise(trace(accelerations, {"q": mechanism.nq, "v": n, "tau": n}))
    return CompiledFunction(program, dtype="float64", lanes=None, threads=1, cache=False)


@pytest.mark.parametrize(
    ("name", "cone"),
    [("hopper", "pyramidal"), ("hopper", "elliptic"), ("half_cheetah", "pyramidal")],
)
def test_compiled_accelerations_are_mujocos_and_do_not_depend_on_other_worlds(name, cone):
    stored = case("mujoco_oracle", name)
    mechanism = read_mjcf(f"{name}.xml", strict=False, text=stored["parameters"]["xml"])
    mechanism = mechanism.replace(options=replace(mechanism.options, cone=cone))
    states = [state for state in stored["reference"] if state["cone"] == cone]
    q, v, tau, qacc = (
        np.array([s[key] for s in states]) for key in ("qpos", "qvel", "qfrc_actuator", "qacc")
    )
    run = compiled(mechanism)
    a = run(q, v, tau)
    scale = np.maximum(1, np.abs(qacc).max(axis=1, keepdims=True))
    assert (np.abs(a - qacc) / scale).max() < 1e-10
    order = np.random.default_rng(1).permutation(len(states))
    assert np.array_equal(run(q[order], v[order], tau[order]), a[order])  # in other lanes, bit for bit
    assert np.array_equal(run(q[:1], v[:1], tau[:1]), a[:1])


def machine(softness):
    """A chain with limits, friction, a joint coupling and a closed loop of the given softness."""
    bodies = [
        zw.Body("a", joint=zw.Revolute("ja", axis=(0, 1, 0), limits=(-0.4, 0.5), friction=0.3), mass=1.0,
                com=(0.2, 0, 0.05), inertia=(0.01, 0.02, 0.02)),
        zw.Body("b", parent="a", position=(0.5, 0, 0), joint=zw.Ball("jb", limits=(0, 0.7)), mass=0.6,
                com=(0.1, 0, 0), inertia=(0.004, 0.005, 0.006)),
        zw.Body("c", parent="b", position=(0.4, 0, 0), joint=zw.Prismatic("jc", axis=(1, 0, 0), friction=0.2),
                mass=0.4, inertia=(0.002, 0.002, 0.003)),
    ]  # fmt: skip
    loops = [
        zw.Connect("pin", ("c", (0.1, 0, 0)), ("world", (1.0, 0, 0)), softness=softness),
        zw.JointCoupling("gear", "ja", "jc", (0.1, 0.5, 0.2), softness=softness),
    ]
    return zw.Mechanism(bodies=bodies, constraints=loops)


@pytest.mark.parametrize("softness", [zw.Softness(), None], ids=["soft", "hard"])
@pytest.mark.parametrize("solver", ["newton", "conjugate"])
def test_loops_limits_and_friction_compile_soft_and_hard(softness, solver):
    mechanism, rng = machine(softness), np.random.default_rng(2)
    q = rng.normal(size=(9, mechanism.nq)) * 0.3
    q[:, 1:5] /= np.linalg.norm(q[:, 1:5], axis=1, keepdims=True)
    v, tau = rng.normal(size=(2, 9, mechanism.nv))
    a = compiled(mechanism, solver)(q, v, tau)
    for k in range(len(q)):
        found = zw.constrained_dynamics(mechanism, q[k], v[k], tau[k])
        assert found.kkt_residual < 1e-10
        np.testing.assert_allclose(a[k], found.acceleration, atol=1e-8 * np.abs(found.acceleration).max())


def heap(count, rng, cone):
    """Free bodies over a plane, whose signed distances have closed forms, with contacts of every
    dimension.
    """
    shapes = [
        lambda surface: zw.Sphere(0.12, surface=surface),
        lambda surface: zw.Capsule(0.07, 0.2, surface=surface),
        lambda surface: zw.Box(0.2, 0.16, 0.12, surface=surface),
    ]
    bodies = []
    for k in range(count):
        friction = (float(rng.uniform(0.2, 1)), 0.01, 0.001)
        surface = zw.Surface(condim=(1, 3, 4, 6)[k % 4], friction=friction, margin=0.01 * (k % 2))
        shape = shapes[k % 3](surface)
        inertia = tuple(rng.uniform(0.003, 0.005, size=3))
        bodies.append(
            zw.Body(f"b{k}", joint=zw.Free(f"j{k}"), mass=1.0 + k / 7, inertia=inertia, geometry=(shape,))
        )
    options = replace(zw.Options(), cone=cone)
    return zw.Mechanism(bodies=bodies, geometry=(zw.Plane(),), options=options, gravity=(0, 0, -9.81))


def piled(mechanism, count, rng, worlds):
    """Configurations in which neighbouring bodies overlap slightly."""
    q = np.tile(np.array(mechanism.neutral, float), (worlds, 1)).reshape(worlds, count, 7)
    q[..., :3] = rng.normal(size=(worlds, count, 3)) * 0.15 + [0, 0, 0.15]
    q[..., 3:] = rng.normal(size=(worlds, count, 4))
    q[..., 3:] /= np.linalg.norm(q[..., 3:], axis=-1, keepdims=True)
    return q.reshape(worlds, -1)


@pytest.mark.parametrize(("count", "cone"), [(4, "pyramidal"), (5, "elliptic")])
def test_compiled_accelerations_of_heaps_equal_those_on_floats(count, cone):
    rng = np.random.default_rng(count)
    mechanism = heap(count, rng, cone)
    q = piled(mechanism, count, rng, 9)
    v, tau = 0.3 * rng.normal(size=(2, 9, mechanism.nv))
    a = compiled(mechanism)(q, v, tau)
    touching = 0
    for k in range(0, 9, 3):
        found = zw.constrained_dynamics(mechanism, q[k], v[k], tau[k])
        touching += len(found.forces)
        np.testing.assert_allclose(a[k], found.acceleration, atol=1e-8 * np.abs(found.acceleration).max())
    assert touching > 2 * count


def arms(cone, condim, pairs=4, spheres=6):
    """MJCF of two arms of four hinges beside each other on a slide, with spheres along their links."""

    def link(arm, k):
        balls = "".join(f'<geom type="sphere" size=".08" pos="{0.1 * j} 0 0"/>' for j in range(spheres))
        axis = "0 0 1" if k % 2 == 0 else "0 1 0"
        inner = link(arm, k + 1) if k + 1 < pairs else ""
        place = f"0 {0.1 * arm} 0" if k == 0 else f"{0.1 * spheres} 0 0"
        return f'<body pos="{place}"><joint axis="{axis}" damping=".1"/>{balls}{inner}</body>'

    options = f'<option cone="{cone}" tolerance="1e-14" iterations="200" ls_tolerance="1e-6"/>'
    default = f'<default><geom condim="{condim}" friction=".6 .01 .01"/></default>'
    slide = '<joint type="slide" axis="1 0 0"/><geom size=".08" pos="0 0 9"/>'
    bodies = f"<body>{slide}{''.join(link(arm, 0) for arm in range(2))}</body>"
    return f"<mujoco>{options}{default}<worldbody>{bodies}</worldbody></mujoco>"


@pytest.mark.parametrize(
    ("cone", "condim"), [("pyramidal", 3), ("elliptic", 3), ("elliptic", 6), ("pyramidal", 1)]
)
def test_worlds_with_few_and_with_many_contacts_between_links_are_mujocos(cone, condim):
    """Steps of worlds with up to some 70 contacts, several rows for each velocity, beside others with few or
    none.
    """
    text, worlds = arms(cone, condim), 11
    model = mujoco.MjModel.from_xml_string(text)
    mechanism = read_mjcf("arms.xml", strict=False, text=text)
    rng = np.random.default_rng(condim)
    q = rng.normal(size=(worlds, 9)) * np.linspace(0, 0.6, worlds)[:, None]
    q[:, 1] += np.linspace(0, -0.5, worlds)
    v = 0.3 * rng.normal(size=(worlds, 9))
    expected, counts = np.empty_like(v), []
    for k in range(worlds):
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = q[k], v[k]
        mujoco.mj_step(model, data)
        expected[k] = data.qvel
        counts.append(data.ncon)
    assert min(counts) < 5 and max(counts) > 60
    found = stepped(mechanism, q, v)
    scale = np.maximum(1, np.abs(expected - v).max(axis=1, keepdims=True))
    assert (np.abs(found - expected) / scale).max() < 1e-7
    order = rng.permutation(worlds)
    assert np.array_equal(stepped(mechanism, q[order], v[order]), found[order])  # in other lanes
    assert np.array_equal(stepped(mechanism, q[:1], v[:1]), found[:1])


def stepped(mechanism, q, v):
    """The velocities after a step."""
    run = zw.Worlds(mechanism, len(q), threads=1)
    run.reset(q=q, v=v)
    run.step()
    assert not run.failed.any()
    return run.v.copy()
