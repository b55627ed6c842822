"""Calls of universal functions whose arguments need no validation, conversion or threads."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from zwang.compiler.backends.llvm.entry_points import DISPATCH
from zwang.compiler.ir.program import Port
from zwang.compiler.runtime.ufunc import UniversalFunction

FAILURES = DISPATCH.index("failures")
DirectCall = Callable[[Sequence[Any]], Any]

# Arguments of other libraries may have labels, raise errors of any type, and lead to arrays of another type.
PLAIN = {np.ndarray, list, tuple, float, int}
TEXT = """
def call(arrays):
    before = failures[0]
    try:
        {arguments}, = arrays
        if not ({plain}) and not are_plain(map(type, ({nonempty},))) or {wrong_empty}:
            return None
        {results} = function({nonempty})
    except Exception:
        return None
    if failures[0] != before:
        return None
    return {outputs}
"""


def direct_call(
    function: UniversalFunction,
    dispatch: ctypes.Array[ctypes.c_int64],
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    empty: np.ndarray,
    *,
    unpack_single: bool = False,
) -> DirectCall:
    """A universal function over the ports that have elements, as a function of a list for all ports.

    It returns the tuple of outputs, or None if that needs more than a direct call; with `unpack_single` a
    single output is returned alone. Its Python code is generated for the numbers of ports, since a general
    one would take half as long as the universal function itself.

    dispatch: the row of words that begins with DISPATCH, which the function's inner loop gets. empty: the
    result for an output without elements, for one world. There must be inputs and outputs with elements.
    """
    arguments = [f"a{k}" for k in range(len(inputs))]
    nonempty = [a for a, port in zip(arguments, inputs, strict=True) if port.size]
    # an empty array may have a leading shape
    wrong = [f"({a} if type({a}) is tuple else {a}.shape != (0,))" for a in arguments if a not in nonempty]
    written = [k for k, port in enumerate(outputs) if port.size]
    returned = ["empty if r0.ndim == empty.ndim else empty_like(r0)"] * len(outputs)
    for number, k in enumerate(written):
        returned[k] = f"r{number}"

    def empty_like(first: np.ndarray) -> np.ndarray:
        return np.broadcast_to(empty, (*first.shape[: -empty.ndim], *empty.shape))

    text = TEXT.format(
        arguments=", ".join(arguments),
        wrong_empty=" or ".join(wrong) or "False",
        nonempty=", ".join(nonempty),
        plain=" and ".join(f"type({a}) is ndarray" for a in nonempty),
        results=", ".join(f"r{number}" for number in range(len(written))),
        outputs=", ".join(returned) + ("" if unpack_single and len(returned) == 1 else ","),
    )
    names = {
        "failures": memoryview(dispatch).cast("B").cast("q")[FAILURES:],
        "function": function.call,
        "owner": function,  # kept alive
        "ndarray": np.ndarray,
        "are_plain": PLAIN.issuperset,
        "empty": empty,
        "empty_like": empty_like,
    }
    exec(text, names)
    return names["call"]  # type: ignore[return-value]
