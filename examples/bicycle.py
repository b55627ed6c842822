"""The Whipple bicycle (Meijaard et al., 2007): its equations with 27 symbols, and its stability without
control.
"""

import time

import numpy as np
import sympy as sp

import zwang as zw

X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
NUMBERS = dict(
    w=1.02,
    c=0.08,
    lam=np.pi / 10,
    g=9.81,
    rR=0.3,
    mR=2.0,
    IRxx=0.0603,
    IRyy=0.12,
    xB=0.3,
    zB=-0.9,
    mB=85.0,
    IBxx=9.2,
    IBxz=2.4,
    IByy=11.0,
    IBzz=2.8,
    xH=0.9,
    zH=-0.7,
    mH=4.0,
    IHxx=0.05892,
    IHxz=-0.00756,
    IHyy=0.06,
    IHzz=0.00708,
    rF=0.35,
    mF=3.0,
    IFxx=0.1405,
    IFyy=0.28,
)
s = {name: sp.Symbol(name, real=True) for name in NUMBERS}
base = [zw.Prismatic(n, axis=a) for n, a in zip("xyz", (X, Y, Z), strict=True)]
base += [zw.Revolute(n, axis=a) for n, a in (("yaw", Z), ("roll", X), ("pitch", Y))]
head = s["w"] + s["c"]  # distance to the point where the steer axis intersects the ground
bodies = [
    zw.Body(
        "frame",
        tuple(base),
        mass=s["mB"],
        com=(s["xB"], 0, s["zB"]),
        inertia=(s["IBxx"], s["IByy"], s["IBzz"], 0, s["IBxz"], 0),
    ),
    zw.Body(
        "rear wheel",
        zw.Revolute("rear", axis=Y),
        "frame",
        (0, 0, -s["rR"]),
        mass=s["mR"],
        inertia=(s["IRxx"], s["IRyy"], s["IRxx"]),
    ),
    zw.Body(
        "fork",
        zw.Revolute("steer", axis=(sp.sin(s["lam"]), 0, sp.cos(s["lam"]))),
        "frame",
        (head, 0, 0),
        mass=s["mH"],
        com=(s["xH"] - head, 0, s["zH"]),
        inertia=(s["IHxx"], s["IHyy"], s["IHzz"], 0, s["IHxz"], 0),
    ),
    zw.Body(
        "front wheel",
        zw.Revolute("front", axis=Y),
        "fork",
        (-s["c"], 0, -s["rF"]),
        mass=s["mF"],
        inertia=(s["IFxx"], s["IFyy"], s["IFxx"]),
    ),
]
up = (0, 0, -1)  # z points down
bicycle = zw.Mechanism("bicycle", bodies, gravity=(0, 0, s["g"]), constraints=[
    zw.Rolling("rear contact", "rear wheel", s["rR"], axis=Y, normal=up),
    zw.Rolling("front contact", "front wheel", s["rF"], axis=Y, normal=up)])  # fmt: skip

start = time.perf_counter()
e = zw.equations(bicycle, speeds=["roll", "steer", "rear"])
print(
    f"derived in {time.perf_counter() - start:.2f} s, {len(e.definitions)} definitions, "
    f"{e.count_operations()} operations"
)


def roll_and_steer_acceleration(speed, x):
    """Roll and steer accelerations at x = (roll, steer, roll rate, steer rate), near the upright position."""
    state = dict.fromkeys(("x", "y", "z", "yaw", "pitch", "rear", "front"), 0.0) | dict(roll=x[0], steer=x[1])
    M, r = e.evaluate(
        {**NUMBERS, **state, "roll_dot": x[2], "steer_dot": x[3], "rear_dot": -speed / NUMBERS["rR"]}
    )
    return np.linalg.solve(M, r)[:2]


for speed in (3, 5, 7):
    h = 1e-5
    J = np.stack(
        [
            (roll_and_steer_acceleration(speed, h * d) - roll_and_steer_acceleration(speed, -h * d)) / (2 * h)
            for d in np.eye(4)
        ],
        axis=1,
    )
    eigenvalues = np.linalg.eigvals(np.vstack([np.eye(4)[2:], J]))
    stable = "stable" if eigenvalues.real.max() < 0 else "unstable"
    print(f"{speed} m/s: {stable}, eigenvalues {np.sort_complex(eigenvalues).round(4)}")

numbers = bicycle.subs(NUMBERS)
disturbed = [5, 0, 0, 0, 0.2, 0, -5 / 0.3, 0, -5 / 0.35]  # a roll rate of 0.2 rad/s at 5 m/s
q0, v0 = zw.assemble(numbers, np.zeros(9), disturbed)
run = zw.simulate(numbers, q0=q0, v0=v0, duration=3, step=2e-3, integrator="rk4")
q, v = run.q.values[0], run.v.values[0]
energies = [sum(zw.energy(numbers, q[i], v[i])) for i in (0, -1)]
print(f"disturbed at 5 m/s it rolls by at most {np.degrees(abs(q[:, 4]).max()):.2f} degrees; "
      f"{np.degrees(q[-1, 4]):.2f} degrees remain after 3 s; "
      f"energy error {energies[1] - energies[0]:.1e} J")  # fmt: skip
assert abs(q[-1, 4]) < 0.2 * abs(q[:, 4]).max() and np.isclose(*energies, atol=1e-6)
