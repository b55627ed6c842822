"""Two optimal control problems by CasADi and Ipopt: the swing-up of a pole on a cart, and the motion of a
six-axis arm from a configuration to a point.

The dynamics are compiled functions of zwang; CasADi gets their exact sparse Jacobians and Hessians.
"""

from pathlib import Path

import casadi
import numpy as np

import zwang as zw
import zwang.interop.casadi as zwang_casadi

QUIET = {"ipopt.print_level": 0, "print_time": False, "ipopt.sb": "yes"}

# ------------------------------------------------------------------------------ swing-up of a pole on a cart
cart_pole = zw.Mechanism(
    "cart pole",
    [
        zw.Body("cart", zw.Prismatic("slide", (1, 0, 0)), mass=1.0),
        zw.Body("pole", zw.Revolute("hinge", (0, 1, 0)), parent="cart", mass=0.3, com=(0, 0, 0.5)),
    ],
    forces=[zw.Motor("push", "slide")],
)
fast = zw.compile(cart_pole)
count, h = 40, 0.05
step = zwang_casadi.function(fast.step, step=h, integrator="rk4")
opti = casadi.Opti()
q, v, push = opti.variable(2, count + 1), opti.variable(2, count + 1), opti.variable(1, count)
for k in range(count):
    q_next, v_next = step(q[:, k], v[:, k], push[k])
    opti.subject_to(q[:, k + 1] == q_next)
    opti.subject_to(v[:, k + 1] == v_next)
opti.subject_to(q[:, 0] == casadi.vertcat(0, np.pi))
opti.subject_to(q[:, count] == 0)
opti.subject_to(v[:, 0] == 0)
opti.subject_to(v[:, count] == 0)
opti.subject_to(opti.bounded(-20, push, 20))
opti.minimize(h * casadi.sumsqr(push))
opti.set_initial(q[1, :], np.linspace(np.pi, 0, count + 1))
opti.solver("ipopt", QUIET)
solution = opti.solve()
pushes = solution.value(push)
run = fast.rollout([0, np.pi], [0, 0], pushes[:, None], steps=count, step=h, integrator="rk4")
print(f"swing-up: {solution.stats()['iter_count']} iterations, cost {solution.value(opti.f):.3f}")
print("          zwang's rollout ends at", run.q[-1].round(8), run.v[-1].round(8))
assert np.allclose(run.q[-1], 0, atol=1e-6) and np.allclose(run.v[-1], 0, atol=1e-6)

# ------------------------------------------------------------------------------ a six-axis arm to a point
arm = zw.load(Path(__file__).parent / "six_axis.urdf")
fast = zw.compile(arm)
tip = arm.bodies[-1].name
inverse_dynamics = zwang_casadi.function(fast.inverse_dynamics)
pose = zwang_casadi.function(fast.frame_pose, frame=tip)
count, h = 15, 0.08
start, goal = np.array([0.0, -1.2, 1.5, -0.3, 0.4, 0.0]), np.array([0.25, 0.45, 0.4])
opti = casadi.Opti()
q, v = opti.variable(arm.nq, count + 1), opti.variable(arm.nv, count + 1)
a = opti.variable(arm.nv, count)
cost = 0
for k in range(count):
    opti.subject_to(q[:, k + 1] == q[:, k] + h * v[:, k] + h**2 / 2 * a[:, k])
    opti.subject_to(v[:, k + 1] == v[:, k] + h * a[:, k])
    tau = inverse_dynamics(q[:, k], v[:, k], a[:, k])
    opti.subject_to(opti.bounded(-150, tau, 150))
    cost += h * casadi.sumsqr(tau) / 100 + h * casadi.sumsqr(a[:, k]) / 10
opti.subject_to(q[:, 0] == start)
opti.subject_to(v[:, 0] == 0)
opti.subject_to(v[:, count] == 0)
opti.subject_to(pose(q[:, count])[1] == goal)
opti.minimize(cost)
opti.set_initial(q, np.tile(start[:, None], count + 1))
opti.solver("ipopt", QUIET | {"ipopt.hessian_approximation": "limited-memory", "ipopt.max_iter": 500})
solution = opti.solve()
reached = zw.frame_pose(arm, solution.value(q)[:, -1], tip).p
print(f"arm:      {solution.stats()['iter_count']} iterations, cost {solution.value(opti.f):.3f}")
print("          the tip ends at", reached.round(8))
assert np.allclose(reached, goal, atol=1e-6)
