"""Derivation of equations of motion, compared with SymPy's mechanics module on an n-link planar pendulum.

    python benchmarks/equations.py [--links 6] [--repeat 5] [--without-lagrange]

All methods give SymPy matrices M and r of M u_dot = r in relative angles. Operations are counted by SymPy's
count_ops: of M in expanded form, and of M and r after common subexpression elimination (zwang's definitions;
SymPy's cse). Two larger systems follow: the Whipple bicycle of examples/bicycle.py with its 27 parameters as
symbols, up to numeric values of M and r, and the mass matrix of Panda, up to LaTeX.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import platform
import runpy
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pinocchio as pin
import sympy as sp
from sympy.physics import mechanics as me

import zwang as zw
from zwang.symbolic.typesetting import mass_matrix_latex

LINE, PAGE = 95, 60  # characters of a line, lines of a page


def chain(n: int) -> zw.Mechanism:
    """A hanging chain of n massless links with particles at their ends."""
    bodies, parent, length = [], "world", sp.Integer(0)
    for k in range(1, n + 1):
        m, l = sp.symbols(f"m{k} l{k}", positive=True)
        joint = zw.Revolute(f"q{k}", axis=(0, 0, 1))
        bodies.append(zw.Body(f"link{k}", joint, parent, (length, 0, 0), mass=m, com=(l, 0, 0)))
        parent, length = f"link{k}", l
    return zw.Mechanism("chain", tuple(bodies), gravity=(sp.Symbol("g", positive=True), 0, 0))


def by_zwang(n: int, method: str = "projection") -> tuple[Any, Any, Any]:
    """M, r and the equations."""
    found = zw.equations(chain(n), method=method)
    return found.mass_matrix, found.right_hand_side, found


def _sympys_chain(n: int) -> tuple[Any, ...]:
    q, u = me.dynamicsymbols(f"q1:{n + 1}"), me.dynamicsymbols(f"u1:{n + 1}")
    frame, origin, g = me.ReferenceFrame("N"), me.Point("O"), sp.Symbol("g", positive=True)
    origin.set_vel(frame, 0)
    return q, u, frame, origin, g


def by_kane(n: int) -> tuple[Any, Any, None]:
    """SymPy's KanesMethod."""
    q, u, N, point, g = _sympys_chain(n)
    frame, particles, loads = N, [], []
    for k in range(n):
        m, l = sp.symbols(f"m{k + 1} l{k + 1}", positive=True)
        frame = frame.orientnew(f"F{k}", "axis", [q[k], N.z])
        frame.set_ang_vel(N, sum(u[: k + 1]) * N.z)
        new = point.locatenew(f"P{k}", l * frame.x)
        new.v2pt_theory(point, N, frame)
        particles.append(me.Particle(f"p{k}", new, m))
        loads.append((new, m * g * N.x))
        point = new
    method = me.KanesMethod(N, q_ind=q, u_ind=u, kd_eqs=[a.diff() - b for a, b in zip(q, u, strict=True)])
    method.kanes_equations(particles, loads)
    return method.mass_matrix, method.forcing, None


def by_lagrange(n: int) -> tuple[Any, Any, None]:
    """SymPy's LagrangesMethod."""
    q, _, N, origin, g = _sympys_chain(n)
    point, frame, particles, rate = origin, N, [], sp.Integer(0)
    for k in range(n):
        m, l = sp.symbols(f"m{k + 1} l{k + 1}", positive=True)
        frame = frame.orientnew(f"F{k}", "axis", [q[k], N.z])
        rate += q[k].diff()
        frame.set_ang_vel(N, rate * N.z)
        new = point.locatenew(f"P{k}", l * frame.x)
        new.v2pt_theory(point, N, frame)
        particle = me.Particle(f"p{k}", new, m)
        particle.potential_energy = -m * g * new.pos_from(origin).dot(N.x)
        particles.append(particle)
        point = new
    method = me.LagrangesMethod(me.Lagrangian(N, *particles), q)
    method.form_lagranges_equations()
    return method.mass_matrix, method.forcing, None


def timed(function: Callable[[int], Any], n: int, repeat: int) -> tuple[float, Any]:
    """The median time, with SymPy's cache cleared before each run, and the last result."""
    times, result = [], None
    for _ in range(repeat):
        sp.core.cache.clear_cache()
        start = time.perf_counter()
        result = function(n)
        times.append(time.perf_counter() - start)
    return statistics.median(times), result


def operations(matrix: Any) -> int:
    return int(sum(sp.count_ops(x) for x in matrix))


def shared_operations(M: Any, r: Any, found: Any) -> int:
    """The number of operations of M and r after common subexpression elimination."""
    if found is not None:
        return found.count_operations()
    defined, reduced = sp.cse([*M, *r])
    return int(sum(sp.count_ops(x) for _, x in defined) + sum(sp.count_ops(x) for x in reduced))


def whipple() -> tuple[zw.Mechanism, dict[str, float]]:
    """The bicycle of examples/bicycle.py, and a value for each of its symbols."""
    with contextlib.redirect_stdout(io.StringIO()):
        names = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "bicycle.py"))
    return names["bicycle"], names["NUMBERS"]


def time_the_bicycle(repeat: int) -> None:
    """Measure the time from the description to the first numeric values of M and r."""
    machine, numbers = whipple()
    state = {name: 0.1 for name in machine.coordinate_names}
    state |= {f"{name}_dot": 0.2 for name in machine.speed_names}

    def derive(_n: int) -> Any:
        found = zw.equations(machine, speeds=["roll", "steer", "rear"])
        found.evaluate({**numbers, **state})
        return found

    seconds, found = timed(derive, 0, repeat)
    defined, mass = found.mass_matrix_cse()
    alone = sum(sp.count_ops(x) for _, x in defined) + operations(mass)
    print(
        f"{'Whipple bicycle':24}{seconds:10.3f}{alone:12}{found.count_operations():12}"
        "  (of M; of M and r after elimination)"
    )


def panda_file() -> Path:
    """Panda's URDF from the package example-robot-data."""
    for folder in Path(pin.__file__).parents:
        for share in (folder / "share", folder / "cmeel.prefix" / "share"):
            file = share / "example-robot-data" / "robots" / "panda_description" / "urdf" / "panda.urdf"
            if file.exists():
                return file
    raise SystemExit("the package example-robot-data is missing: pip install '.[test]'")


def time_pandas_mass_matrix(repeat: int) -> None:
    """Measure the time from the loaded mechanism to LaTeX, and the length of the text."""
    robot = zw.load(panda_file(), strict=False)
    seconds, text = timed(lambda _n: mass_matrix_latex(zw.equations(robot)), 0, repeat)
    defined, mass = zw.equations(robot).mass_matrix_cse()
    lines = [f"{s} = {x}" for s, x in defined]
    lines += [str(mass[i, j]) for i in range(mass.rows) for j in range(i, mass.cols) if mass[i, j] != 0]
    pages = sum(math.ceil(len(line) / LINE) for line in lines) / PAGE
    packed = sum(len(line) + 3 for line in lines) / LINE / PAGE
    print(
        f"{'M of Panda, LaTeX':24}{seconds:10.3f}  {len(defined)} definitions, "
        f"{len(text)} characters of LaTeX; as text {pages:.1f} pages "
        f"with one definition per line, {packed:.1f} as running text"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--links", type=int, default=6)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--without-lagrange", action="store_true")
    arguments = parser.parse_args()
    n = arguments.links
    print(f"Python {platform.python_version()}, SymPy {sp.__version__}, {n} links, {platform.machine()}")
    rows: list[tuple[str, Callable[[int], Any], int]] = [
        ("zwang, projection", by_zwang, arguments.repeat),
        ("zwang, Lagrange", lambda k: by_zwang(k, "lagrange"), arguments.repeat),
        ("SymPy KanesMethod", by_kane, max(1, arguments.repeat // 2)),
    ]
    if not arguments.without_lagrange:
        rows.append(("SymPy LagrangesMethod", by_lagrange, 1))
    print(f"{'':24}{'seconds':>10}{'ops in M':>12}{'after CSE':>12}")
    for name, function, repeat in rows:
        seconds, (M, r, found) = timed(function, n, repeat)
        print(f"{name:24}{seconds:10.3f}{operations(M):12}{shared_operations(M, r, found):12}")
    seconds, (_, _, found) = timed(by_zwang, 20, 1)
    print(f"{'zwang, 20 links':24}{seconds:10.3f}{'':12}{found.count_operations():12}")
    time_the_bicycle(arguments.repeat)
    time_pandas_mass_matrix(arguments.repeat)


if __name__ == "__main__":
    main()
