"""Contacts in single precision: the solver converges to rounding, near the solution in double precision."""

from pathlib import Path

import numpy as np

import zwang as zw

WALKER = Path(__file__).parents[2] / "examples" / "models" / "walker2d.xml"


def test_a_walker_falls_in_single_precision_as_in_double():
    mechanism, rng = zw.load(WALKER), np.random.default_rng(3)
    q = np.array(mechanism.home or mechanism.neutral) + 0.05 * rng.normal(size=(128, mechanism.nq))
    v, u = 0.1 * rng.normal(size=(128, mechanism.nv)), rng.uniform(-1, 1, size=(128, 6))
    ends = [
        zw.compile(mechanism, dtype=dtype).rollout(q, v, u, steps=200, every=100)
        for dtype in ("float64", "float32")
    ]
    assert all(np.isfinite(end.q).all() for end in ends)
    difference = np.abs(ends[0].q - ends[1].q).max(axis=(1, 2))
    assert np.median(difference) < 1e-4  # in a few worlds another contact is made first


def test_a_hard_loop_moves_in_single_precision_as_in_double():
    def link(name, parent, position, length):
        joint, inertia = zw.Revolute(name, (0, 1, 0)), (length**2 / 12,) * 3
        return zw.Body(name, joint, parent, position, mass=1.0, com=(length / 2, 0, 0), inertia=inertia)

    links = [
        link("a", "world", (0, 0, 0), 0.3),
        link("b", "a", (0.3, 0, 0), 0.6),
        link("c", "world", (0.7, 0, 0), 0.5),
    ]
    loop = zw.Connect("pin", ("b", (0.6, 0, 0)), ("c", (0.5, 0, 0)))
    mechanism = zw.Mechanism("four-bar", links, constraints=[loop])
    q, v = zw.assemble(mechanism, [-1.2, 1.0, -1.3], [0, 0, 0])
    single, double = (zw.Worlds(mechanism, 1, step=1e-3, dtype=dtype) for dtype in ("float32", "float64"))
    single.set(q=q, v=v)
    for _ in range(400):
        double.reset(q=single.q.astype(float), v=single.v.astype(float))
        single.step()
        double.step()
        assert single.solver_status[0] in (zw.SolverStatus.CONVERGED, zw.SolverStatus.STAGNATED)
        np.testing.assert_allclose(single.v, double.v, atol=2e-4)


def test_a_hard_stack_of_unequal_masses_stays_at_rest_in_single_precision():
    hard = zw.Surface(hard=True, friction=(0.6, 0.005, 0.0001))

    def box(k, mass):
        joint = (
            zw.Prismatic(f"x{k}", (1, 0, 0)),
            zw.Prismatic(f"z{k}", (0, 0, 1)),
            zw.Revolute(f"r{k}", (0, 1, 0)),
        )
        at = (0.02 * k, 0, 0.1 + 0.2 * k)
        geometry = [zw.Box(0.3, 0.3, 0.2, surface=hard)]
        return zw.Body(f"b{k}", joint, position=at, mass=mass, inertia=(0.01,) * 3, geometry=geometry)

    boxes = [box(k, mass) for k, mass in enumerate((1.0, 30.0, 0.5))]
    worlds = zw.Worlds(
        zw.Mechanism("stack", boxes, geometry=[zw.Plane(surface=hard)]), dtype="float32", step=2e-3
    )
    worlds.step(substeps=4000)
    assert not worlds.failed[0]
    assert np.abs(worlds.q).max() < 2e-6 and np.abs(worlds.v).max() < 3e-5
