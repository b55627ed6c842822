"""Reverse mode through loops, branches and arrays, against dual numbers through the same text."""

import numpy as np
import pytest

from zwang.algebra.dual_control_flow import parts, tangent_array, tangents
from zwang.api.compilation.programs import compile_function
from zwang.compiler.derivatives.reverse import Vjp
from zwang.compiler.frontend.trace import trace
from zwang.compiler.passes.dead_code import remove_dead_code
from zwang.errors import TraceError
from zwang.scalar import (
    ActiveIndices,
    absolute,
    atan2,
    cond,
    floor,
    fori_loop,
    lane_by_lane,
    lane_maximum,
    sin,
    sqrt,
    where,
    while_loop,
    without_derivatives,
    zeros,
)

SIZES = {"x": 4, "y": 2}


def array_of(values):
    array = zeros((len(values),))
    for k, value in enumerate(values):
        array = array.set(k, value)
    return array


def nested_loops(x, y):
    """A loop with a branch that writes an array which the loop reads, and loops inside, up to the index and
    from the index on.
    """

    def body(i, carry):
        s, a = carry

        def then(s, a):
            a = a.set(i + 1, a[i] * sin(s) + a[i + 1])
            return s * 1.1 + a[i + 1] * y[1], a

        s, a = cond(s < 5.0, then, lambda s, a: (s - a[i] * x[2], a), s, a)
        below = fori_loop(0, i + 1, lambda j, t: t * a[j] + s, 0.3, unroll=False)
        return s + 0.01 * below + 0.1 * fori_loop(i, 5, lambda j, t: t * sin(a[j] + s), 0.4, unroll=False), a

    s, a = fori_loop(0, 5, body, (x[1], array_of([*(x * y[0]), 0.0, 0.0])), unroll=False)
    return [s, a[3] * a[5], atan2(s, x[3])]


def active_rows(x, y):
    """A loop over active indices that overwrites the element of the following one, and a gather."""
    a = array_of([*x, *y])
    active = ActiveIndices(array_of([where(e > 0, 1.0, 0.0) for e in (*x, *y)]))

    def body(i, carry):
        s, b = carry
        return s * 0.9 + a[i] * a[i], b.set(i, s * a[i] * (1 + b[i]))

    s, b = active.for_each(body, (x[0] * y[1], zeros((6,))))
    s, b = active.for_each(body, (s, b))
    return [s, b[2] + b[0] * b[5], a.gather(floor(absolute(x[0]) * 2)) ** 2, b.gather(x[2]) * y[0]]


def later_changes(x, y):
    """Loops that read an array that stays as it is, and one that a later loop changes."""
    a, b = array_of([*x, *y]), array_of([*y, *x])

    def read(b):
        def body(i, s):
            return s * 0.9 + a[i] * cond(s < 1.0, lambda s: b[i] * sin(s), lambda s: a[5 - i] * s, s)

        return body

    s = fori_loop(0, 6, read(b), x[1], unroll=False)
    c = fori_loop(0, 5, lambda i, b: b.set(i, b[i + 1] * a[i] * s), b, unroll=False)
    return [s, c[2] * c[4], fori_loop(0, 6, read(c), s * y[0], unroll=False)]


def dynamic_bounds(x, y):
    """A loop up to a number that the data decide, backwards, which scatters; a branch with a singularity."""
    count = lane_maximum(floor(3 + x[0]), 6)

    def body(i, carry):
        s, a = carry
        s, a = cond(
            1.0 * i < floor(3 + x[0]),
            lambda s, a: (s * y[0] + a[i], a.scatter(1.0 * i, a[i] * s)),
            lambda s, a: (s, a),
            s, a,
        )  # fmt: skip
        return s, a

    s, a = fori_loop(0, count, body, (y[1], array_of([*x, *y])), reverse=True)
    rest = x[1] * x[1] - 4.0
    return [s, a[0] * a[1], where(rest > 0, sqrt(where(rest > 0, rest, 0.0)), s)]


def lane_by_lane_products(x, y):
    """A loop up to the number of the lane itself, for one lane after the other."""

    def own(carry):
        s, a = carry
        count = lane_maximum(floor(3 + x[0]), 6)
        return fori_loop(0, count, lambda i, c: (c[0] * c[1][i] + y[1], c[1].set(i, c[0] * x[3])), (s, a))

    s, a = lane_by_lane(own, (x[2], array_of([*x, *y])))
    return [s, a[0] + a[1] * a[2]]


def held_iteration(x, y):
    """Newton's method for z^3 + z = x y, of which only the last step is differentiated."""
    p = x[0] * y[0]

    def found(p):
        def step(s):
            z, k = s
            return z - (z * z * z + z - p) / (3 * z * z + 1), k + 1.0

        return while_loop(lambda s: s[1] < 40.0, step, (0.0 * p, 0.0))[0]

    z = without_derivatives(found, p)
    slope = without_derivatives(lambda z: 3 * z * z + 1, z)
    return [(z - (z * z * z + z - p) / slope) * x[1]]


@pytest.mark.parametrize(
    "text", [nested_loops, active_rows, later_changes, dynamic_bounds, lane_by_lane_products, held_iteration]
)
def test_reverse_mode_is_the_transpose_of_dual_numbers(text):
    def listed(x, y):
        return np.array(text(x, y), dtype=object)

    def forward(x, y, dx, dy):
        with tangents():
            found = listed(tangent_array(x, dx), tangent_array(y, dy))
            return np.array([parts(z)[1] for z in found], dtype=object)

    program = remove_dead_code(trace(listed, SIZES, holds=True))
    vjp, m = Vjp.of(program, ("x", "y")), program.outputs[0].size
    reverse = compile_function(lambda x, y, w: tuple(vjp([x, y], list(w))), {**SIZES, "w": m}, cache=False)
    along = compile_function(forward, {**SIZES, "dx": 4, "dy": 2}, cache=False)
    rng = np.random.default_rng(0)
    x, y, dx, dy, w = (rng.normal(size=(33, n)) for n in (4, 2, 4, 2, m))
    by_x, by_y = reverse(x, y, w)
    expected = (w * along(x, y, dx, dy)).sum(axis=-1)
    assert np.isfinite(expected).all() and np.abs(expected).max() > 0.1
    np.testing.assert_allclose((by_x * dx).sum(-1) + (by_y * dy).sum(-1), expected, rtol=1e-11, atol=1e-11)


def test_an_iteration_that_is_differentiated_is_refused():
    def text(x, y):
        return [while_loop(lambda s: s < 1.0, lambda s: s * s + y[0], x[0])]

    with pytest.raises(TraceError, match="loop until a condition holds has no derivative in reverse mode"):
        Vjp.of(trace(text, SIZES, holds=True), ("x",))
