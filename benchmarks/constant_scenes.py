"""What the constants of constraints, collisions and solvers decide: scenes that are stepped, assembled or
differentiated.

`measured(scene)` prints the seconds of a step of one world and of each of many, and the numbers by which two
runs of a scene are compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

import zwang as zw
from benchmarks import contact
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.mechanism import samples

STEPS, MANY, FEW = 50, 128, 16
SECONDS = 1.0  # in which the shortest time is looked for
LARGE = ("heap100", "boxes25")  # scenes of which there are FEW worlds


class Work(NamedTuple):
    """What is timed: a function, how many steps of how many worlds it makes, and then the numbers."""

    run: Callable[[], object]
    steps: int
    numbers: Callable[[], Any]


def measured(scene: str) -> None:
    """Print the seconds of a step of one world and of each of many, and the numbers of one world."""
    times, numbers = [], np.zeros(0)
    for worlds in (1, FEW if scene in LARGE else MANY):
        work = work_of(scene, worlds)
        work.run()
        if worlds == 1:
            numbers = np.ravel(work.numbers())
        best, end_of_all = np.inf, time.perf_counter() + SECONDS
        while time.perf_counter() < end_of_all:
            start = time.perf_counter()
            work.run()
            best = min(best, (time.perf_counter() - start) / work.steps / worlds)
        times.append(best)
    print(*times, *map(float, numbers))


def work_of(scene: str, worlds: int) -> Work:
    """The work of a scene: "assembled", "reduced" and scenes of "derivatives" are no steps of worlds."""
    name, _, how = scene.partition(" ")
    m = mechanism_of(name)
    if how == "derivatives":
        return differentiated(m, worlds)
    if how == "assembled":
        return assembled(m)
    if how == "reduced":
        return reduced(m, worlds)
    w = zw.Worlds(m, worlds, threads=1, dtype="float32" if how == "single" else "float64")

    def run() -> None:
        w.reset()
        w.step(substeps=STEPS)

    return Work(run, STEPS, lambda: w.q[0].copy())


def differentiated(m: zw.Mechanism, worlds: int) -> Work:
    """The derivatives of a step of settled worlds."""
    w, fast = zw.Worlds(m, 1, threads=1), zw.compile(m, threads=1)
    w.step(substeps=STEPS)
    q, v = (np.repeat(x, worlds, axis=0) for x in (w.q, w.v))
    u = np.zeros((worlds, w.control.shape[1]))
    return Work(lambda: fast.step_derivatives(q, v, u), 1, lambda: fast.step_derivatives(q, v, u).A[0])


def assembled(m: zw.Mechanism) -> Work:
    """The assembly of a mechanism whose loop is open."""
    q = np.asarray(m.home, float) + 0.1
    return Work(lambda: zw.assemble(m, q), 1, lambda: zw.assemble(m, q)[0])


def reduced(m: zw.Mechanism, worlds: int) -> Work:
    """Simulations in independent velocities."""
    options = {"duration": 0.1, "step": 0.002, "coordinate_reduction": True, "progress": False}
    start = {"q0": np.repeat([m.home], worlds, axis=0), "v0": np.zeros((worlds, m.nv))}
    found: list[Any] = []
    return Work(
        lambda: found.append(zw.simulate(m, **start, **options)), 50, lambda: found[0].q.values[0][-1]
    )


# ------------------------------------------------------------------------------------------- mechanisms


def mechanism_of(name: str) -> zw.Mechanism:
    """The mechanism of a scene; with hard contacts where its name begins with "hard"."""
    if name in BUILT:
        return BUILT[name]()
    hard = name.startswith("hard")
    text = text_of("boxes5" if name == "hard5" else name)
    m = read_mjcf("scene.xml", text=text, strict=False)
    return with_hard_surfaces(m) if hard else m


def text_of(scene: str) -> str:
    """The MJCF of a scene."""
    if scene in TEXTS:
        return TEXTS[scene]()
    return contact.text_of(scene)


def meshes(count: int, vertices: int, apart: float) -> str:
    """Free bodies with random convex meshes on each other on a floor, apart by a distance [m]."""
    rng, bodies, assets = np.random.default_rng(1), "", ""
    for k in range(count):
        points = rng.normal(size=(vertices, 3))
        points *= [0.1, 0.13, 0.08] / np.linalg.norm(points, axis=1)[:, None]
        assets += f"<mesh name='m{k}' vertex='{' '.join(map(repr, points.ravel().tolist()))}'/>"
        place = f"{0.05 * (k % 2)} {0.05 * (k % 3)} {0.1 + apart * k}"
        bodies += f"<body pos='{place}'><freejoint/><geom type='mesh' mesh='m{k}' mass='1'/></body>"
    floor = "<geom type='plane' size='5 5 .1'/>"
    return f"<mujoco><asset>{assets}</asset><worldbody>{floor}{bodies}</worldbody></mujoco>"


def flat_faces() -> str:
    """A cube as a mesh, a cylinder, a mesh and an ellipsoid, one on the other, on a box."""
    corners = " ".join(f"{x} {y} {z}" for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1))
    shapes = "type='mesh' mesh='cube'", "type='cylinder' size='.1 .1'", "type='mesh' mesh='cube'"
    bodies = "".join(
        f"<body pos='.01 0 {0.1 + 0.199 * k}'><freejoint/><geom {shape} mass='1'/></body>"
        for k, shape in enumerate((*shapes, "type='ellipsoid' size='.1 .12 .1'"))
    )
    return (
        f"<mujoco><asset><mesh name='cube' vertex='{corners}'/></asset><worldbody>"
        f"<geom type='box' size='1 1 .1' pos='0 0 -.1'/>{bodies}</worldbody></mujoco>"
    )


def capsules(count: int) -> str:
    """Free capsules on a floor, some of them parallel, in two layers."""
    bodies = "".join(
        f"<body pos='{0.19 * (k // 2)} 0 {0.1 + 0.19 * (k % 2)}' euler='90 {0 if k % 3 else 3} 0'>"
        "<freejoint/><geom type='capsule' size='.1 .2'/></body>"
        for k in range(count)
    )
    return f"<mujoco><worldbody><geom type='plane' size='5 5 .1'/>{bodies}</worldbody></mujoco>"


def clusters(count: int, shapes: int) -> str:
    """Free bodies of many spheres each, above a floor."""
    rng, bodies = np.random.default_rng(2), ""
    for k in range(count):
        inner = "".join(
            f"<geom size='.05' pos='{x} {y} {z}'/>" for x, y, z in rng.uniform(-0.1, 0.1, (shapes, 3))
        )
        bodies += f"<body pos='{0.3 * (k % 3)} {0.3 * (k // 3)} .15'><freejoint/>{inner}</body>"
    return f"<mujoco><worldbody><geom type='plane' size='5 5 .1'/>{bodies}</worldbody></mujoco>"


def with_option(scene: str, option: str) -> Callable[[], str]:
    """The MJCF of a scene with another solver."""
    return lambda: contact.text_of(scene).replace("<worldbody>", f"<option {option}/><worldbody>", 1)


def with_hard_surfaces(m: zw.Mechanism) -> zw.Mechanism:
    """The mechanism with hard contacts of all its shapes."""

    def hard(shapes: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(replace(shape, surface=replace(shape.surface, hard=True)) for shape in shapes)

    bodies = tuple(replace(body, geometry=hard(body.geometry)) for body in m.bodies)
    return m.replace(bodies=bodies, geometry=hard(m.geometry))


def bead(law: str) -> zw.Mechanism:
    """A bead on a rough ring, by a "nonideal" law or by one of "coulomb"."""
    x, y, N, vx, vy = sp.symbols("x y N x_dot y_dot", real=True)
    r, speed = sp.sqrt(x**2 + y**2), sp.sqrt(vx**2 + vy**2)
    slides = zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("y", axis=(0, 1, 0))
    if law == "coulomb":
        rough: Any = zw.CoulombFriction("rough", 0.25, constraint="ring", sliding={"x": -y / r, "y": x / r})
    else:
        rough = zw.NonIdeal("rough", "ring", {"x": -0.25 * N * vx / speed, "y": -0.25 * N * vy / speed})
    return zw.Mechanism(
        law,
        [zw.Body("bead", slides, mass=0.3)],
        gravity=(0, -9.81, 0),
        constraints=[zw.Holonomic("ring", r - 0.5), rough],
        home=(0.5, 0),
        options=zw.Options(timestep=0.001),
    )


def pinned_chain(count: int = 40) -> zw.Mechanism:
    """A chain of links with revolute joints, whose end is pinned to the ground."""
    links = [
        zw.Body(f"link{k}", zw.Revolute(f"joint{k}", axis=(0, 1, 0)), f"link{k - 1}" if k else "world",
                (0, 0, -0.1 if k else 0), mass=0.1, com=(0, 0, -0.05), inertia=(1e-4, 1e-4, 1e-5))
        for k in range(count)
    ]  # fmt: skip
    pin = zw.Connect("pin", (f"link{count - 1}", (0, 0, -0.1)), ("world", (0.04 * count, 0, -0.03 * count)))
    m = zw.Mechanism("chain", links, constraints=[pin], options=zw.Options(timestep=0.001))
    return m.replace(home=tuple(zw.assemble(m, np.full(count, 0.05))[0]))


TEXTS: dict[str, Callable[[], str]] = {
    "meshes": lambda: meshes(8, 150, 0.15),
    "deep": lambda: meshes(8, 150, 0.05),
    "flat": flat_faces,
    "capsules": lambda: capsules(10),
    "clusters": lambda: clusters(6, 8),
    "gradients": with_option("ant", "solver='CG'"),
    "gauss_seidel": with_option("boxes5", "solver='PGS' cone='elliptic'"),
    "noslip": with_option("boxes5", "noslip_iterations='20' cone='elliptic'"),
}
BUILT: dict[str, Callable[[], zw.Mechanism]] = {
    "four_bar": samples.four_bar,
    "pinned_chain": pinned_chain,
    "coulomb": lambda: bead("coulomb"),
    "nonideal": lambda: bead("nonideal"),
}
