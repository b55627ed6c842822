"""NumPy universal functions from machine code: NumPy handles strides, broadcasting and the interpreter lock.

The module uses PyUFunc_FromFuncAndDataAndSignature of NumPy's C interface, whose position in the table of
functions has not changed since NumPy 1.3. <https://numpy.org/doc/stable/reference/c-api/ufunc.html>
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from zwang.errors import CompileError

try:
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]
except ImportError:  # NumPy 1
    from numpy.core import _multiarray_umath  # type: ignore[attr-defined]

POSITION = 31  # of PyUFunc_FromFuncAndDataAndSignature in the table
NO_IDENTITY = -1
MAXIMUM_PORTS = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32


class UniversalFunction:
    """A generalised universal function over operands of the given shapes; `call` is the numpy.ufunc.

    inputs, outputs: the shape of each operand after the leading axes, which are broadcast. function: address
    of the inner loop; data: address that the loop gets as its last argument. `call` is valid as long as this
    object exists. Raises CompileError if NumPy cannot create the function.
    """

    def __init__(
        self,
        function: int,
        data: int,
        inputs: Sequence[tuple[int, ...]],
        outputs: Sequence[tuple[int, ...]],
        dtype: str,
    ):
        ports = len(inputs) + len(outputs)
        if ports > MAXIMUM_PORTS:
            raise CompileError(
                f"the program has {ports} inputs and outputs; NumPy allows {MAXIMUM_PORTS}: "
                "combine some into one array"
            )
        self._functions = (ctypes.c_void_p * 1)(function)
        self._data = (ctypes.c_void_p * 1)(data)
        self._types = (ctypes.c_char * ports)(*[np.dtype(dtype).num] * ports)
        signature = f"{_core_dimensions(inputs)}->{_core_dimensions(outputs)}".encode()
        self.call = _constructor()(
            ctypes.addressof(self._functions),
            ctypes.addressof(self._data),
            ctypes.addressof(self._types),
            1,
            len(inputs),
            len(outputs),
            NO_IDENTITY,
            b"zwang",
            b"",
            0,
            signature,
        )
        if not isinstance(self.call, np.ufunc) or self.call.nargs != ports:
            raise CompileError("this version of NumPy cannot create universal functions from machine code")


def _core_dimensions(shapes: Sequence[tuple[int, ...]]) -> str:
    return ",".join(f"({','.join(map(str, shape))})" for shape in shapes)


@cache
def _constructor() -> Callable[..., Any]:
    """PyUFunc_FromFuncAndDataAndSignature as a Python function."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer_of(_multiarray_umath._UFUNC_API, None), ctypes.POINTER(ctypes.c_void_p))
    kinds = (
        [ctypes.c_void_p] * 3 + [ctypes.c_int] * 4 + [ctypes.c_char_p] * 2 + [ctypes.c_int, ctypes.c_char_p]
    )
    address = table[POSITION]
    if not address:
        raise CompileError("this version of NumPy has no interface for universal functions from machine code")
    return ctypes.PYFUNCTYPE(ctypes.py_object, *kinds)(address)
