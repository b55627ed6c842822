"""Functions of a compiled mechanism in PyTorch: with autograd, vmap and torch.compile, and exact derivatives.

All functions are one custom operator (`torch.library.custom_op`) on CPU tensors, whose memory the compiled
code reads and writes without a copy. Its last argument is the key of the function, which saved programs of
torch.export and torch.jit contain: it is the same in every process. The backward formula multiplies by the
Jacobian, which is such a function itself, so that higher derivatives exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from zwang.errors import ArgumentError, MissingExtraError, ShapeError, StateError, TraceError
from zwang.interop.array_function import ArrayFunction
from zwang.interop.bound_function import (
    BoundFunction,
    bound_function,
    check_dtype,
    remedy_by_conversion,
    wrong_float,
    wrong_kind,
)
from zwang.mechanism.type_validation import short_repr

try:
    torch: Any = import_module("torch")  # not by a statement, which a type checker may take for this file
    forward_ad: Any = import_module("torch.autograd.forward_ad")
except ImportError as error:
    raise MissingExtraError(
        f"zwang.interop.torch needs PyTorch ({error}): pip install 'zwang[torch]'"
    ) from None

__all__ = ["function"]

_FUNCTIONS: dict[str, ArrayFunction] = {}
"""The functions by their keys, and derivatives by theirs once they are needed."""
_SEQUENCES = (list, tuple)  # torch.compile of PyTorch 2.6 does not know their union
_PLAIN = (np.ndarray, list, tuple, float, int)
_TYPES = {np.dtype("float32"): torch.float32, np.dtype("float64"): torch.float64}


def function(
    method: Callable[..., Any], *, jacobian: Callable[..., np.ndarray] | None = None, **options: Any
) -> Callable[..., Any]:
    """A method of a compiled mechanism as a function of PyTorch tensors on the CPU.

    method: such as `fast.forward_dynamics` with `fast = zw.compile(mechanism)`, or `fast.step`.
    options: the arguments of the method that are not arrays: frame, axes; step [s], integrator and
    coordinate_reduction of a step.
    jacobian: the derivatives (..., m, n) of all results by all inputs, as a function of the flat NumPy inputs
    (..., size) in the order of the program; by default the exact ones of the expression graph.

    The function takes the tensors of the method, with the worlds first, and params={"m": ...} if the
    mechanism has symbols. It works with autograd, also twice and in forward mode, with the transformations of
    torch.func (vmap is one call for all worlds) and with torch.compile(fullgraph=True); jvp and jacfwd nested
    in each other raise TraceError, as PyTorch would omit derivatives. Derivatives are ordinary partial
    derivatives by the elements of the tensors, also of params: q has nq elements, whose quaternions are
    normalised first, so that the derivative along a quaternion is zero.

    Raises ArgumentError for another object than such a method. A call raises ShapeError; StateError, with the
    name of the argument, for a tensor of another type than that of the function (float64 unless
    zw.compile(mechanism, dtype="float32") says otherwise) or on another device; ParameterError for a symbol
    without a value. A step has derivatives with contacts and constraints, too, those of `step_derivatives`; a
    second derivative of such a step, or a derivative of another function with loops, raises TraceError, and
    that of a step that has no exact derivatives, as with the noslip solver, SimulationError.
    """
    bound = bound_function(method, options, jacobian)
    return TensorFunction(bound, method.__doc__, partial(function, jacobian=jacobian, **options), method)


class TensorFunction:
    """What `function` returns. A copy in another process is made again of the mechanism."""

    def __init__(
        self, bound: BoundFunction, text: str | None, make: Callable[..., Any], method: Callable[..., Any]
    ):
        self.__name__, self.__doc__ = bound.name, text
        self._bound, self._dtype = bound, _TYPES[bound.function.dtype]
        self._key = _registered(bound.function)
        self._made_by = make, (method,)

    def __call__(self, *args: Any, params: Mapping[Any, Any] | None = None, **keywords: Any) -> Any:
        bound = self._bound
        arrays, batch = _arrays(bound, self._dtype, bound.given(args, keywords), params)
        if torch.compiler.is_compiling():
            results = _operator(arrays, self._key)
        else:
            results = _evaluated(self._key, arrays)
        shaped = [
            x if len(shape) == 1 else x.reshape((*batch, *shape))
            for x, shape in zip(results, bound.shapes, strict=True)
        ]
        return bound.structured(shaped)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._made_by

    def __deepcopy__(self, _: dict[int, Any]) -> TensorFunction:
        return self  # nothing of it changes


def _arrays(
    bound: BoundFunction, dtype: Any, given: Mapping[str, Any], params: Mapping[Any, Any] | None
) -> tuple[list[Any], tuple[int, ...]]:
    """The validated arguments as tensors (*batch, size), without a copy, and the leading shape."""
    own = bound.inputs[: len(bound.arguments)]
    tensors, leading, values = [], [], []
    for argument in own:
        x = _checked(bound, dtype, argument.name, given[argument.name], argument.shape)
        tensors.append(x)
        leading.append(argument.leading_shape(tuple(x.shape), bound.function.name))
    if bound.mechanism.symbols or params:
        named = zip(bound.mechanism.symbols, bound.parameters(params), strict=True)
        values = [_checked(bound, dtype, f"params[{name!r}]", x, ()) for name, x in named]
        leading += [tuple(x.shape) for x in values]
    batch = leading[0]
    if [shape for shape in leading if shape != batch]:
        batch = _broadcast(leading, bound.function.name)
        tensors = [x.expand((*batch, *argument.shape)) for argument, x in zip(own, tensors, strict=True)]
    arrays = [x if argument.shape else x.unsqueeze(-1) for argument, x in zip(own, tensors, strict=True)]
    if values:
        arrays.append(torch.stack([x.expand(batch) for x in values], dim=-1))
    return arrays, batch


def _broadcast(shapes: Sequence[tuple[int, ...]], name: str) -> tuple[int, ...]:
    """The common leading shape. Raises ShapeError."""
    try:
        return tuple(torch.broadcast_shapes(*shapes))
    except RuntimeError:
        listed = ", ".join(map(str, shapes))
        raise ShapeError(f"the leading shapes {listed} of {name} do not broadcast") from None


def _checked(bound: BoundFunction, dtype: Any, name: str, x: Any, shape: tuple[int, ...]) -> Any:
    """An argument as a tensor of the function's type on the CPU; zeros if it is None. Raises StateError.

    dtype: that of the function, which torch.compile cannot look up in PyTorch 2.6.
    """
    if isinstance(x, torch.Tensor) and x.dtype is dtype and x.is_cpu and x.layout is torch.strided:
        return x
    if x is None:
        return torch.zeros(shape, dtype=dtype)
    if not isinstance(x, torch.Tensor):
        return _tensor(bound, dtype, name, x)
    if x.dtype != dtype:
        kind, own = str(x.dtype).removeprefix("torch."), bound.function.dtype.name
        if x.dtype.is_floating_point:
            remedy = remedy_by_conversion(f".to(torch.{own})", kind)
            raise wrong_float(bound, name, kind, remedy)
        if not kind.startswith(("int", "uint")):
            raise wrong_kind(bound, name, kind)
        x = x.to(dtype)
    if x.device.type != "cpu":
        raise StateError(
            f"{name!r} is on {x.device}, and {bound.function.name} computes on the CPU: use .cpu()"
        )
    if x.layout is not torch.strided:
        raise StateError(f"{name!r} has the layout {x.layout}; convert it by .to_dense()")
    return x


def _tensor(bound: BoundFunction, dtype: Any, name: str, x: Any) -> Any:
    """An argument that is no tensor as one. Raises StateError."""
    own = bound.function.dtype.name
    if isinstance(x, _SEQUENCES) and any(isinstance(part, torch.Tensor) for part in x):
        raise StateError(f"{name!r} is a {type(x).__name__} of tensors: join them by torch.stack")
    if not isinstance(x, _PLAIN):
        x = bound.without_labels(name, x)
    if isinstance(x, np.ndarray):
        check_dtype(bound, name, x.dtype, remedy_by_conversion(f".astype({own!r})", x.dtype.name))
    try:
        return torch.as_tensor(x, dtype=dtype)
    except (TypeError, ValueError, RuntimeError):
        raise StateError(f"{name!r} is {short_repr(x)}; give a tensor of the type torch.{own}") from None


def _registered(function: ArrayFunction) -> str:
    """The key of a function: its identity, and after a space its name, for messages."""
    name = function.name.encode("ascii", "backslashreplace").decode()
    key = f"{function.identity} {name}"
    _FUNCTIONS.setdefault(key, function)
    return key


def _derivative_key(key: str, inputs: Sequence[int]) -> str:
    """The key of the derivative by these inputs, from which the function's own is known in any process."""
    identity, _, name = key.partition(" ")
    return f"{identity}/{','.join(map(str, inputs))} {name}"


def _function(key: str) -> ArrayFunction:
    """The function with this key. Raises ArgumentError if this process has not made it."""
    if key not in _FUNCTIONS:
        path, _, name = key.partition(" ")
        of, _, inputs = path.rpartition("/")
        if not of:
            raise ArgumentError(
                f"a saved program calls {name}, which this process has not made: make it first, by "
                "zwang.interop.torch.function with an equal mechanism, compiled with the same settings, and "
                "the same options; a function with jacobian=... is known to its own process only"
            )
        _FUNCTIONS[key] = _function(f"{of} {name}").derivative(tuple(map(int, inputs.split(","))))
    return _FUNCTIONS[key]


def _evaluated(key: str, arrays: Sequence[Any]) -> Sequence[Any]:
    """The results of a function on tensors (*batch, size) with one leading shape."""
    if _is_plain(arrays):
        return _computed(key, arrays)
    transformations = _transformations()
    if torch.compiler.is_compiling() or _is_traced_by_jit() or "Functionalize" in transformations:
        return _operator(list(arrays), key)
    if transformations.count("Jvp") > 1:
        raise TraceError(
            f"torch.func.jvp and jacfwd are nested around {_function(key).name}, where PyTorch would "
            "omit derivatives: use torch.func.jacrev or vjp in one of them, as torch.func.hessian does"
        )
    return _Differentiable.apply(key, *arrays)


def _is_plain(arrays: Sequence[Any]) -> bool:
    """Whether these are ordinary tensors in memory, of which no derivative is wanted, and no transformation
    or tracer of PyTorch observes the operators.
    """
    if _is_traced() or forward_ad._current_level >= 0 or torch._C._functorch.peek_interpreter_stack():
        return False
    gradients = torch.is_grad_enabled()
    return not [x for x in arrays if type(x) is not torch.Tensor or (gradients and x.requires_grad)]


def _is_traced() -> bool:
    """Whether something records the operators, beside the compiler."""
    return torch._C._len_torch_dispatch_stack() > 0 or _is_traced_by_jit()


def _is_traced_by_jit() -> bool:
    """Whether torch.jit.trace records the operators; it could not save what autograd's functions are."""
    return torch._C._get_tracing_state() is not None


def _transformations() -> list[str]:
    """The kinds of the transformations of torch.func around a call."""
    return [each.key().name for each in torch._C._functorch.get_interpreter_stack() or ()]


def _computed(key: str, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """The results of a function on tensors in memory, which are read as they are, as new tensors."""
    results = _function(key)(*[x.numpy(force=True) for x in arrays])
    # the memory of NumPy's results becomes that of tensors; the order of theirs is always that of the axes
    return tuple([torch.from_numpy(np.ascontiguousarray(x)) for x in results])


class _Differentiable(torch.autograd.Function):
    """A function, by its key and its tensors, under autograd, forward-mode differentiation and torch.func,
    which do not see the derivatives of operators.
    """

    @staticmethod
    def forward(key: str, *arrays: Any) -> tuple[Any, ...]:
        """The results."""
        is_memory = all(type(x) is torch.Tensor for x in arrays) and not _is_traced()
        return _computed(key, arrays) if is_memory else tuple(_operator(list(arrays), key))

    @staticmethod
    def setup_context(ctx: Any, inputs: Sequence[Any], output: Any) -> None:
        """Keep what the derivatives depend on."""
        ctx.key, *arrays = inputs
        ctx.save_for_backward(*arrays)
        ctx.save_for_forward(*arrays)

    @staticmethod
    def backward(ctx: Any, *weights: Any) -> tuple[Any, ...]:
        """The vector-Jacobian products w^T J."""
        wanted = tuple(k for k, needed in enumerate(ctx.needs_input_grad[1:]) if needed)
        return (None, *_pulled_back(ctx.key, ctx.saved_tensors, weights, wanted))

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Any) -> tuple[Any, ...]:
        """The Jacobian-vector products J t."""
        return _pushed_forward(ctx.key, ctx.saved_tensors, tangents)

    @staticmethod
    def vmap(info: Any, in_dims: Sequence[int | None], key: str, *arrays: Any) -> tuple[Any, Any]:
        """One call for all worlds."""
        found = _Differentiable.apply(key, *_with_worlds(info, in_dims[1:], arrays))
        return found, (0,) * len(found)


def _with_worlds(info: Any, in_dims: Sequence[int | None], arrays: Sequence[Any]) -> list[Any]:
    """Tensors whose first axis is that of vmap."""
    return [
        x.unsqueeze(0).expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)
        for x, dim in zip(arrays, in_dims, strict=False)
    ]


@torch.library.custom_op(
    "zwang::evaluate",
    mutates_args=(),
    device_types="cpu",
    schema="(Tensor[] arrays, str function) -> Tensor[]",
)
def _operator(arrays: Sequence[Any], key: str) -> list[Any]:
    """The results of the function with this key on tensors (*batch, size) with one leading shape."""
    return list(_computed(key, arrays))


@_operator.register_fake
def _(arrays: Sequence[Any], key: str) -> list[Any]:
    """Tensors as the results are."""
    return [arrays[0].new_empty((*arrays[0].shape[:-1], size)) for size in _function(key).results]


def _keep(ctx: Any, inputs: tuple[Any, str], output: Any) -> None:
    """Keep what the derivatives depend on."""
    arrays, ctx.key = inputs
    ctx.save_for_backward(*arrays)


def _backward(ctx: Any, weights: Sequence[Any]) -> tuple[Any, ...]:
    """The vector-Jacobian products w^T J."""
    wanted = tuple(k for k, needed in enumerate(ctx.needs_input_grad[0]) if needed)
    return _pulled_back(ctx.key, ctx.saved_tensors, weights, wanted), None


_operator.register_autograd(_backward, setup_context=_keep)


@_operator.register_vmap
def _(info: Any, in_dims: tuple[Any, None], arrays: Sequence[Any], key: str) -> tuple[Any, Any]:
    """One call for all worlds."""
    found = _operator(_with_worlds(info, in_dims[0], arrays), key)
    return found, [0] * len(found)


def _pulled_back(
    key: str, arrays: Sequence[Any], weights: Sequence[Any], wanted: tuple[int, ...]
) -> list[Any]:
    """The vector-Jacobian products w^T J by the wanted inputs; None by the others."""
    gradients: list[Any] = [None] * len(arrays)
    if not wanted:
        return gradients
    J = _evaluated(_derivative_key(key, wanted), arrays)[-1]
    w = torch.cat(list(weights), dim=-1)
    sizes = [arrays[k].shape[-1] for k in wanted]
    J = J.reshape(*J.shape[:-1], w.shape[-1], sum(sizes))
    # Product and sum are much faster than a matrix product for each world, and in place without new memory,
    # which is not possible where autograd itself batches the weights, as with is_grads_batched=True.
    in_place = _is_plain((J, w)) and not torch._C._functorch.is_legacy_batchedtensor(w)
    weighted = J.mul_(w.unsqueeze(-1)) if in_place else J * w.unsqueeze(-1)
    product = weighted.sum(-2)
    for k, part in zip(wanted, product.split(sizes, dim=-1), strict=True):
        gradients[k] = part
    return gradients


def _pushed_forward(key: str, arrays: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
    """The Jacobian-vector products J t of all results; a tangent is None where it is zero."""
    results = list(_function(key).results)
    wanted = tuple(k for k, tangent in enumerate(tangents) if tangent is not None)
    J = _evaluated(_derivative_key(key, wanted), arrays)[-1]
    t = torch.cat([tangents[k] for k in wanted], dim=-1)
    J = J.reshape(*J.shape[:-1], sum(results), t.shape[-1])
    return (J * t.unsqueeze(-2)).sum(-1).split(results, dim=-1)


def __dir__() -> list[str]:
    return sorted(__all__)
