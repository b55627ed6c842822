"""Random functions of scalars with loops, branches, tables and scratch arrays: one text for floats and
traces.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from zwang import scalar

SIZE = 3
"""How many inputs and outputs such a function has."""

CONTROL = ["while", "cond", "for", "chosen", "span"]


def random_function(seed: int, statements: int = 6) -> Callable[[Any], list[Any]]:
    """A function of an array (SIZE,) that is the same for the same seed."""
    plan = _plan(random.Random(seed), statements, depth=2)
    return lambda x: _run(plan, [*x], scalar.zeros(SIZE))[0][:SIZE]


def random_inputs(seed: int, lanes: int) -> np.ndarray:
    """Inputs (lanes, SIZE) of moderate size, zeros among them."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random((lanes, SIZE)) < 0.1, 0.0, rng.normal(size=(lanes, SIZE)) * 2)


def _plan(rng: random.Random, statements: int, depth: int) -> list[tuple]:
    kinds = ["binary", "binary", "unary", "where", "load", "store", "gather", "scatter"]
    kinds += CONTROL if depth else []
    return [_statement(rng, rng.choice(kinds), depth) for _ in range(statements)]


def _statement(rng: random.Random, kind: str, depth: int) -> tuple:
    places = [rng.randrange(SIZE) for _ in range(4)]
    if kind in CONTROL:
        inner = [_plan(rng, rng.randint(1, 4), depth - 1) for _ in range(2)]
        return (kind, places, rng.randint(2, 5), inner)
    choice = {"binary": "+-*/mM", "unary": ["sin", "cos", "absolute", "floor", "sqrt", "exp"]}.get(kind, " ")
    return (kind, places, rng.choice(choice), rng.choice([0.5, -1.25, 2.0]))


def _run(plan: list[tuple], state: list[Any], array: Any, i: Any = None) -> tuple[list[Any], Any]:
    state = list(state)
    for kind, places, choice, data in plan:
        if kind in CONTROL:
            state, array = _control(kind, places, choice, data, state, array)
        elif kind == "store":
            array = array.set(places[0] if i is None else i, state[places[1]])
        elif kind == "scatter":
            array = array.scatter(state[places[0]], state[places[1]])
        elif kind == "gather":
            state[places[0]] = state[places[1]] * data + array.gather(state[places[2]])
        elif kind == "load":
            state[places[0]] = state[places[1]] * data + array[places[2] if i is None else i]
        else:
            state[places[0]] = _value(kind, choice, data, [state[p] for p in places[1:]])
    return state, array


def _value(kind: str, choice: str, data: float, args: list[Any]) -> Any:
    a, b, c = args
    if kind == "where":
        return scalar.where(scalar.less(a, b), c, a * data)
    if kind == "unary":
        return _tamed(getattr(scalar, choice)(scalar.clip(a, 0.0, 3.0) if choice in ("sqrt", "exp") else a))
    if choice in "mM":
        return (scalar.minimum if choice == "m" else scalar.maximum)(a, b)
    if choice == "/":
        return a / (1 + b * b)
    return _tamed({"+": a + b, "-": a - b * data, "*": a * b + c}[choice])


def _tamed(x: Any) -> Any:
    return scalar.clip(x, -50.0, 50.0)


def _control(kind: str, places: list[int], count: int, inner: list, state: list[Any], array: Any) -> tuple:
    if kind == "cond":
        less = scalar.less(state[places[0]], state[places[1]])
        return scalar.cond(
            less, lambda a: _run(inner[0], state, a), lambda a: _run(inner[1], state, a), array
        )
    if kind == "for":
        factors = scalar.table([0.5, -1.0, 2.0, 0.0, 1.5])

        def turn(i, carry):
            s, a = _run(inner[0], *carry)
            s[places[0]] = _tamed(s[places[0]] + factors[i] * state[places[1]])
            return s, a

        return scalar.fori_loop(0, count, turn, (state, array), unroll=False)
    if kind == "chosen":
        flags = scalar.empty(count)
        for k in range(count):
            flags = flags.set(k, scalar.sin(3 * k + state[places[0]]))

        def chosen(i, carry):
            s, a = _run(inner[0], *carry, i=None)
            s[places[1]] = _tamed(s[places[1]] * flags[i] + i * state[places[2]])
            return s, a.set(places[3], s[places[1]])

        return scalar.for_each(scalar.ActiveIndices(flags), chosen, (state, array))

    if kind == "span":
        wanted = scalar.absolute(scalar.floor(state[places[0]]))
        highest = scalar.lane_maximum(wanted, count)

        def inside(i, carry):
            return scalar.cond(
                1.0 * i < wanted, lambda s, a: _run(inner[0], s, a), lambda s, a: (s, a), *carry
            )

        return scalar.fori_loop(places[1], highest, inside, (state, array), reverse=places[2] == 0)

    def goes_on(carry):
        s, a, turns = carry
        return scalar.logical_and(turns < 4, s[places[0]] < s[places[1]] + turns + a[places[2]])

    def step(carry):
        s, a, turns = carry
        return (*_run(inner[0], s, a), turns + 1)

    s, a, _ = scalar.while_loop(goes_on, step, (state, array, 0))
    return s, a
