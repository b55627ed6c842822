"""Functions of a compiled mechanism in JAX: under jit, vmap, jvp, vjp and grad, with exact derivatives.

On the CPU a function is a foreign function of XLA (`jax.ffi`), elsewhere a `jax.pure_callback`. Many worlds,
and `jax.vmap`, are one call. All functions are one primitive of JAX, with the function as its parameter. Its
JVP multiplies the Jacobian J, which is compiled from the expression graph, by the tangents; this is linear in
them, so that JAX can transpose it. J is itself such a function, so that higher derivatives exist.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from zwang.errors import MissingExtraError, ShapeError
from zwang.interop.array_function import ArrayFunction
from zwang.interop.bound_function import (
    BoundArgument,
    BoundFunction,
    bound_function,
    check_dtype,
    remedy_by_conversion,
)
from zwang.interop.xla_handler import XlaHandler

try:
    import jax
    import jax.numpy as jnp
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir
except ImportError as error:
    raise MissingExtraError(f"zwang.interop.jax needs JAX ({error}): pip install 'zwang[jax]'") from None

__all__ = ["function"]


def function(
    method: Callable[..., Any], *, jacobian: Callable[..., np.ndarray] | None = None, **options: Any
) -> Callable[..., Any]:
    """A method of a compiled mechanism as a function of JAX arrays.

    method: such as `fast.forward_dynamics` with `fast = zw.compile(mechanism)`, or `fast.step`.
    options: the arguments of the method that are not arrays: frame, axes; step [s], integrator and
    coordinate_reduction of a step. They are part of the compiled code, and cannot be traced.
    jacobian: the derivatives (..., m, n) of all results by all inputs, as a function of the flat NumPy inputs
    (..., size) in the order of the program; by default the exact ones of the expression graph.

    The function takes the arrays of the method, with the worlds first, and params={"m": ...} if the mechanism
    has symbols. It works under jit, vmap (one call for all worlds), jvp, vjp, grad, jacfwd, jacrev and
    hessian. Derivatives are ordinary partial derivatives by the elements of the arrays, also of params: q has
    nq elements, whose quaternions are normalised first, so that the derivative along a quaternion is zero.

    Raises ArgumentError for another object than such a method. A call raises ShapeError; StateError, with the
    name of the argument, for float32 in a function of float64, which needs
    `jax.config.update("jax_enable_x64", True)`; and ParameterError for a symbol without a value. A step has
    derivatives with contacts and constraints, too, those of `step_derivatives`; a second derivative of such a
    step, or a derivative of another function with loops or of a step with constraints that reduces the
    coordinates, raises TraceError, and that of a step that has no exact derivatives, as with the noslip
    solver, SimulationError.
    """
    bound = bound_function(method, options, jacobian)

    @jax.jit
    def call(given: dict[str, Any], params: Mapping[str, Any] | None) -> Any:
        return _call(bound, given, params)

    def mechanics(*args: Any, params: Mapping[Any, Any] | None = None, **keywords: Any) -> Any:
        named = None if params is None else {str(name): value for name, value in params.items()}
        given = bound.given(args, keywords)
        return call({name: bound.without_labels(name, x) for name, x in given.items()}, named)

    mechanics.__name__ = bound.name
    mechanics.__doc__ = method.__doc__
    return mechanics


def _call(bound: BoundFunction, given: dict[str, Any], params: Mapping[str, Any] | None) -> Any:
    """The results of a call, with validated arguments."""
    parts = {}
    for argument in bound.inputs[: len(bound.arguments)]:
        value = given[argument.name]
        value = np.zeros(argument.shape, bound.function.dtype) if value is None else value
        parts[argument] = _checked(bound, argument.name, value)
    leading = [argument.leading_shape(x.shape, bound.function.name) for argument, x in parts.items()]
    values = bound.parameters(params)
    if values:
        names = bound.mechanism.symbols
        values = [_checked(bound, f"params[{name!r}]", x) for name, x in zip(names, values, strict=True)]
        leading += [x.shape for x in values]
    try:
        batch: tuple[int, ...] = np.broadcast_shapes(*leading)
    except ValueError:
        shapes = ", ".join(map(str, leading))
        raise ShapeError(f"the leading shapes {shapes} of {bound.function.name} do not broadcast") from None
    arrays = [_flat(argument, x, batch) for argument, x in parts.items()]
    if values:
        arrays.append(jnp.stack([jnp.broadcast_to(x, batch) for x in values], axis=-1))
    results = _FUNCTION.bind(*arrays, function=bound.function)
    shaped = [x.reshape(*batch, *shape) for x, shape in zip(results, bound.shapes, strict=True)]
    return bound.structured(shaped)


def _flat(argument: BoundArgument, x: Any, batch: tuple[int, ...]) -> Any:
    """An argument as an array (*batch, size)."""
    full = jnp.broadcast_to(x, (*batch, *argument.shape))
    return full if argument.shape else full[..., None]


def _checked(bound: BoundFunction, name: str, x: Any) -> Any:
    """An argument as an array of the function's type, which integers and Python's floats take. Raises
    StateError.
    """
    dtype = bound.function.dtype
    array = jnp.asarray(x)
    if jax.dtypes.canonicalize_dtype(dtype) == dtype:
        remedy = remedy_by_conversion(f".astype({dtype.name!r})", array.dtype.name)
    else:
        remedy = (
            'JAX has no float64 by default; call jax.config.update("jax_enable_x64", True) at the beginning, '
            'or use zw.compile(mechanism, dtype="float32")'
        )
    if array.dtype.kind in "iu" or (array.dtype.kind == "f" and array.weak_type):  # as of a Python float
        array = array.astype(jax.dtypes.canonicalize_dtype(dtype))
    # arrays from before a change of jax_enable_x64 keep their type, but results would not have it
    check_dtype(bound, name, jax.dtypes.canonicalize_dtype(array.dtype), remedy)
    return array.astype(dtype)


def _evaluated(*arrays: Any, function: ArrayFunction) -> tuple[Any, ...]:
    """The results of compiled code on arrays with one leading shape."""
    batch = arrays[0].shape[:-1] if arrays else ()
    kinds = [jax.ShapeDtypeStruct((*batch, size), function.dtype) for size in function.results]
    if not math.prod(batch):
        return tuple(jnp.zeros(kind.shape, kind.dtype) for kind in kinds)
    if jax.default_backend() == "cpu":
        call = jax.ffi.ffi_call(_registered(function), kinds, vmap_method="broadcast_all")
        return tuple(call(*arrays))
    found = jax.pure_callback(
        lambda *given: function(*map(np.asarray, given)), kinds, *arrays, vmap_method="broadcast_all"
    )
    return tuple(found)


def _result_types(*arrays: Any, function: ArrayFunction) -> list[Any]:
    """The types of the results, with the leading shape of the arrays."""
    batch = arrays[0].shape[:-1]
    return [
        arrays[0].update(shape=(*batch, size), dtype=function.dtype, weak_type=False)
        for size in function.results
    ]


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, function: ArrayFunction
) -> tuple[Sequence[Any], Sequence[Any]]:
    """The results, and their changes J t for the tangents t."""
    inputs = tuple(k for k, tangent in enumerate(tangents) if not isinstance(tangent, ad.Zero))
    if not any(function.sizes[k] for k in inputs):
        values = _FUNCTION.bind(*primals, function=function)
        return values, [jnp.zeros_like(value) for value in values]
    *values, J = _FUNCTION.bind(*primals, function=function.derivative(inputs))
    t = jnp.concatenate([tangents[k] for k in inputs], axis=-1)
    J = J.reshape(*J.shape[:-1], sum(function.results), t.shape[-1])
    changes = (J * t[..., None, :]).sum(-1)
    ends = np.cumsum(function.results)[:-1].tolist()
    return values, jnp.split(changes, ends, axis=-1)


def _batched(
    arrays: Sequence[Any], axes: Sequence[Any], *, function: ArrayFunction
) -> tuple[Sequence[Any], Sequence[int]]:
    """The results for arrays with one more axis each, or None: one call for all worlds."""
    worlds = next(x.shape[axis] for x, axis in zip(arrays, axes, strict=True) if axis is not None)
    leading = [batching.bdim_at_front(x, axis, worlds) for x, axis in zip(arrays, axes, strict=True)]
    results = _FUNCTION.bind(*leading, function=function)
    return results, [0] * len(results)


# Not jax.custom_jvp: partial evaluation of a scan omits its rule, so that there is no second derivative.
_FUNCTION = Primitive("zwang")
"""A function of flat arrays (*batch, size), its parameter `function`."""
_FUNCTION.multiple_results = True
_FUNCTION.def_impl(_evaluated)
_FUNCTION.def_abstract_eval(_result_types)
mlir.register_lowering(_FUNCTION, mlir.lower_fun(_evaluated, multiple_results=True))
ad.primitive_jvps[_FUNCTION] = _jvp
batching.primitive_batchers[_FUNCTION] = _batched


@cache
def _registered(function: ArrayFunction) -> str:
    """The name under which XLA knows a function."""
    name = f"zwang_{function.identity}"
    if name not in _HANDLERS:
        _HANDLERS[name] = XlaHandler(function)
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(_HANDLERS[name].address), platform="cpu")
    return name


_HANDLERS: dict[str, XlaHandler] = {}
"""The handlers that XLA may call, for the life of the process."""


def __dir__() -> list[str]:
    return sorted(__all__)
