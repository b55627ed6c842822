"""Mechanisms of the literature with symbols as parameters, shared by the tests."""

import numpy as np
import sympy as sp

from zwang.mechanism.bodies import Body
from zwang.mechanism.constraints import NoSideSlip, PointSpeed, Rolling
from zwang.mechanism.force_elements import Damper, Motor, Spring
from zwang.mechanism.joints import Prismatic, Revolute
from zwang.mechanism.mechanism import Mechanism

X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)


def positive(names: str) -> tuple[sp.Symbol, ...]:
    return sp.symbols(names, positive=True, seq=True)


def furuta() -> Mechanism:
    """The rotary (Furuta) pendulum of IMECE 2021-72324, Sec. 4.2."""
    m_r, m_p, L_r, L_p, g, B_r, B_p = positive("m_r m_p L_r L_p g B_r B_p")
    J, K = positive("J_r1:4"), positive("J_p1:4")
    arm = Body("arm", Revolute("theta", axis=Z), mass=m_r, com=(L_r / 2, 0, 0), inertia=J)
    rod = Body(
        "pendulum", Revolute("alpha", axis=X), "arm", (L_r, 0, 0), mass=m_p, com=(0, 0, L_p / 2), inertia=K
    )
    forces = (Motor("tau", joint="theta"), Damper("theta", B_r), Damper("alpha", B_p))
    return Mechanism("furuta", bodies=(arm, rod), gravity=(0, 0, -g), forces=forces)


SLEIGH_SPEEDS = (PointSpeed("u", "sleigh", X, (-positive("b")[0], 0, 0)), "theta", "delta")


def sleigh() -> Mechanism:
    """The modified Chaplygin sleigh of IMECE 2021-72324, Sec. 4.1: V = k1 delta^2 + k2 delta^4."""
    m_c, m_r, J_c, J_r, a, b, k_1, k_2 = positive("m_c m_r J_c J_r a b k_1 k_2")
    plane = (Prismatic("x", axis=X), Prismatic("y", axis=Y), Revolute("theta", axis=Z))
    hull = Body("sleigh", plane, mass=m_c, inertia=(J_c, J_c, J_c))
    rotor = Body(
        "rotor", Revolute("delta", axis=Z), "sleigh", mass=m_r, com=(a, 0, 0), inertia=(J_r, J_r, J_r)
    )
    knife_edge = NoSideSlip("knife_edge", "sleigh", direction=Y, point=(-b, 0, 0))
    return Mechanism(
        "sleigh",
        bodies=(hull, rotor),
        gravity=(0, 0, 0),
        forces=(Spring("delta", (2 * k_1, 0, 4 * k_2)),),
        constraints=(knife_edge,),
    )


def chain(n: int) -> Mechanism:
    """A planar pendulum of n massless links with particles, relative angles."""
    bodies, parent, length = [], "world", 0
    (g,) = positive("g")
    for k in range(1, n + 1):
        m, l = positive(f"m{k} l{k}")
        bodies.append(
            Body(f"link{k}", Revolute(f"q{k}", axis=Z), parent, (length, 0, 0), mass=m, com=(l, 0, 0))
        )
        parent, length = f"link{k}", l
    return Mechanism(f"chain of {n}", bodies=tuple(bodies), gravity=(g, 0, 0))


def whipple(p: dict | None = None) -> Mechanism:
    """The bicycle of Meijaard et al. (2007): z down, origin at the rear contact.

    p: values of the parameters by name; without them they are symbols.
    """
    names = (
        "w c lam g rR mR IRxx IRyy xB zB mB IBxx IBxz IByy IBzz xH zH mH IHxx IHxz IHyy IHzz rF mF IFxx IFyy"
    )
    v = p or {name: sp.Symbol(name, real=True) for name in names.split()}
    cos, sin = (np.cos, np.sin) if p else (sp.cos, sp.sin)
    steer_axis = (sin(v["lam"]), 0, cos(v["lam"]))
    head = (v["w"] + v["c"], 0, 0)  # where the steer axis meets the ground
    base = tuple(
        f(n, axis=a)
        for f, n, a in (
            (Prismatic, "x", X),
            (Prismatic, "y", Y),
            (Prismatic, "z", Z),
            (Revolute, "yaw", Z),
            (Revolute, "roll", X),
            (Revolute, "pitch", Y),
        )
    )
    frame = Body("rear frame", base, mass=v["mB"], com=(v["xB"], 0, v["zB"]),
                 inertia=(v["IBxx"], v["IByy"], v["IBzz"], 0, v["IBxz"], 0))  # fmt: skip
    rear = Body("rear wheel", Revolute("rear", axis=Y), "rear frame", (0, 0, -v["rR"]), mass=v["mR"],
                inertia=(v["IRxx"], v["IRyy"], v["IRxx"]))  # fmt: skip
    fork = Body(
        "fork",
        Revolute("steer", axis=steer_axis),
        "rear frame",
        head,
        mass=v["mH"],
        com=(v["xH"] - head[0], 0, v["zH"]),
        inertia=(v["IHxx"], v["IHyy"], v["IHzz"], 0, v["IHxz"], 0),
    )
    front = Body("front wheel", Revolute("front", axis=Y), "fork", (-v["c"], 0, -v["rF"]), mass=v["mF"],
                 inertia=(v["IFxx"], v["IFyy"], v["IFxx"]))  # fmt: skip
    rolling = (Rolling("rear contact", "rear wheel", v["rR"], axis=Y, normal=(0, 0, -1)),
               Rolling("front contact", "front wheel", v["rF"], axis=Y, normal=(0, 0, -1)))  # fmt: skip
    return Mechanism(
        "bicycle", bodies=(frame, rear, fork, front), gravity=(0, 0, v["g"]), constraints=rolling
    )
