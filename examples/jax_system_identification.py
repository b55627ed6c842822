"""The mass and the damping of a pendulum on a cart from a measured motion, by gradients through a rollout in
JAX.
"""

import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp

import zwang as zw
import zwang.interop.jax as zwang_jax

jax.config.update("jax_enable_x64", True)

mass, damping = sp.symbols("mass damping", positive=True)
crane = zw.Mechanism(
    "crane",
    [
        zw.Body("trolley", zw.Prismatic("slide", (1, 0, 0)), mass=1.0),
        zw.Body("load", zw.Revolute("hinge", (0, 1, 0)), parent="trolley", mass=mass, com=(0, 0, -0.6)),
    ],
    forces=[zw.Motor("push", "slide"), zw.Damper("hinge", damping)],
)
step = zwang_jax.function(zw.compile(crane).step, step=0.02, integrator="rk4")
pushes = jnp.asarray(3 * np.sin(np.linspace(0, 12, 100)))[:, None]


def motion(parameters: jax.Array) -> jax.Array:
    """The configurations (100, 2) of the rollout with these parameters (2,)."""
    params = {"mass": parameters[0], "damping": parameters[1]}

    def advance(state, push):
        after = step(*state, push, params=params)
        return (after.q, after.v), after.q

    return jax.lax.scan(advance, (jnp.array([0.0, 0.4]), jnp.zeros(2)), pushes)[1]


true = jnp.array([0.7, 0.05])
noise = 1e-3 * np.random.default_rng(0).normal(size=(100, 2))
measured = motion(true) + noise
jacobian = jax.jit(jax.jacfwd(lambda p: motion(p).ravel()))
found = jnp.array([0.3, 0.2])
for iteration in range(8):  # Gauss-Newton
    residual = (motion(found) - measured).ravel()
    found = found - jnp.linalg.lstsq(jacobian(found), residual)[0]
    print(iteration, np.asarray(found).round(5), f"residual {float(jnp.linalg.norm(residual)):.4f}")
assert np.allclose(found, true, atol=5e-3)
