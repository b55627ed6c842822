"""The cross product of vectors of any scalar."""

import numpy as np
import sympy as sp

from zwang.algebra.rotations import cross, skew


def test_the_cross_product_equals_numpy_bit_for_bit() -> None:
    rng = np.random.default_rng(1)
    for a, b in rng.normal(size=(1000, 2, 3)):
        np.testing.assert_array_equal(cross(a, b), np.cross(a, b))


def test_the_cross_product_accepts_symbols_and_numbers() -> None:
    """On objects `np.cross` needs NumPy 2.3; the product with integers keeps structural zeros exact."""
    a = np.array(sp.symbols("x y z"), dtype=object)
    b = np.array(sp.symbols("u v w"), dtype=object)
    assert [sp.expand(d) for d in cross(a, b) - skew(a) @ b] == [0, 0, 0]
    assert list(cross(a, np.array([0, 0, 1]))) == [a[1], -a[0], 0]
    assert cross(np.array([1, 0, 0]), np.array([0, 1, 0])).dtype == np.dtype(int)
