"""Two particles on a rigid wire: virtual displacements keep its length, and the constraint force does no
work.
"""

import numpy as np
import sympy as sp

import zwang as zw

m1, m2, L = sp.symbols("m1 m2 L", positive=True)
AXES = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}


def particle(name, mass):
    return zw.Body(name, tuple(zw.Prismatic(name + n, axis=axis) for n, axis in AXES.items()), mass=mass)


wire = zw.Distance("wire", ("a", (0, 0, 0)), ("b", (0, 0, 0)), L)
pair = zw.Mechanism("pair", [particle("a", m1), particle("b", m2)], gravity=(0, 0, 0), constraints=[wire])
print(zw.classify(pair))
e = zw.equations(pair, ["ay", "az", "bx", "by", "bz"])
r1, r2 = e.q[:3, 0], e.q[3:, 0]
displacements = e.velocities.jacobian(e.speeds)  # the columns span all virtual displacements
stretch = (r1 - r2).T * (displacements[:3, :] - displacements[3:, :])
print("(r1 - r2) . (dr1 - dr2) =", list(sp.simplify(stretch)))
assert sp.simplify(stretch).is_zero_matrix

numbers = pair.subs({"m1": 2.0, "m2": 3.0, "L": 5.0})
q, v, applied = (
    np.array([3.0, 0, 0, 0, 4, 0]),
    np.array([0.0, 0, 1, 0, 0, -1]),
    np.array([1.0, 0, 0, 0, 0, 0]),
)
found = zw.joint_reactions(numbers, q, v, applied)
along = np.array([3.0, -4, 0]) / 5
force = {body: reaction.force for body, reaction in found.constraints["wire"].items()}
tension = -force["a"] @ along
# reduced mass times (relative velocity^2 / L + relative acceleration by the applied force along the wire)
expected = 1.2 * (2.0**2 / 5 + 0.6 * 1.0 / 2)
print(f"on a {force['a']}, on b {force['b']}: tension {tension:.6f} N, power {found.power['wire']:.1e} W")
assert np.allclose(force["a"], -force["b"]) and np.allclose(np.cross(force["a"], along), 0)
assert np.isclose(tension, expected) and abs(found.power["wire"]) < 1e-12
