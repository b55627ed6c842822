"""Linear-quadratic regulators of very heavy and very light masses against their closed form."""

import numpy as np
import pytest

import zwang as zw
from zwang.control import lqr
from zwang.errors import SolveError


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_the_regulator_of_a_heavy_and_of_a_light_mass_is_that_of_the_textbook():
    """m x'' = u: K = (k, d) with k^2 = q / r, d^2 = p / r + 2 m k; the poles are those of m s^2 + d s + k."""

    def regulator(mass, q, p, r):
        body = zw.Body("cart", zw.Prismatic("x", (1, 0, 0)), mass=mass)
        m = zw.Mechanism("rail", [body], gravity=(0, 0, 0), forces=[zw.Motor("push", "x")])
        return lqr(zw.linearize(m, [0.0]), [q, p], [r]).K[0]

    for mass, q, p, r in ((1e6, 1e-6, 0, 1e6), (1e9, 1e-6, 0, 1e6), (1e-12, 1, 0, 1), (1e-6, 1, 1, 1)):
        k = np.sqrt(q / r)
        np.testing.assert_allclose(regulator(mass, q, p, r), [k, np.sqrt(p / r + 2 * mass * k)], rtol=1e-14)
    with pytest.raises(SolveError, match=r"than the method resolves, or .* largest, .* is 1e\+12"):
        regulator(1e-12, 1, 1, 1)  # -1 and -1e12
