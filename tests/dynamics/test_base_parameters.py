"""A tree with base inertial parameters has the dynamics of the original tree."""

import numpy as np
import pytest

import zwang as zw
from tests.mechanisms import KINDS, random_mechanism, random_state
from zwang.dynamics import aba, crba, rnea
from zwang.dynamics import forward_dynamics_crba as by_mass_matrix
from zwang.dynamics.base_inertial_parameters import with_base_parameters


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kinds", [KINDS, (zw.Revolute,), (zw.Revolute, zw.Prismatic)])
def test_base_parameters_change_neither_mass_matrix_nor_bias_forces(seed, kinds):
    m = random_mechanism(seed, kinds=kinds)
    q, v, tau, a = random_state(m, seed)
    tree = with_base_parameters(m.tree)
    H = zw.mass_matrix(m, q)
    np.testing.assert_allclose(crba.crba(tree, q).astype(float), H, atol=1e-12 * abs(H).max())
    expected = zw.inverse_dynamics(m, q, v, a)
    found = rnea.rnea(tree, q, v, a).astype(float)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * abs(expected).max())
    expected = zw.forward_dynamics(m, q, v, tau)
    for dynamics in (by_mass_matrix.forward_dynamics_crba, aba.aba):
        found = dynamics(tree, q, v, tau).astype(float)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * abs(expected).max())


def test_base_parameters_of_parallel_revolute_axes_have_no_mass():
    m = random_mechanism(1, kinds=(zw.Revolute,))
    aligned = m.replace(
        bodies=[
            zw.Body(**{**vars(b), "joint": zw.Revolute(f"z{k}", axis=(0, 0, 1))})
            for k, b in enumerate(m.bodies)
        ]
    )
    assert all(link.mass == 0 and link.h[2] == 0 for link in with_base_parameters(aligned.tree).links)
