"""Functions of a compiled mechanism in PyTorch: with autograd, vmap and torch.compile, and exact derivatives.

A function is a custom operator (`torch.library.custom_op`) on CPU tensors, whose memory the compiled code
reads and writes without a copy. There is one operator for each number of inputs and outputs; its last
argument is the number of the function. The backward formula multiplies by the Jacobian, which is such a
function itself, so that higher derivatives exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from zwang.errors import MissingExtraError, ShapeError, StateError, TraceError
from zwang.interop.array_function import ArrayFunction
from zwang.interop.bound_function import BoundFunction, bound_function, check_dtype
from zwang.mechanism.type_validation import short_repr

try:
    torch: Any = import_module("torch")  # not by a statement, which a type checker may take for this file
    forward_ad: Any = import_module("torch.autograd.forward_ad")
except ImportError as error:
    raise MissingExtraError(
        f"zwang.interop.torch needs PyTorch ({error}): pip install 'zwang[torch]'"
    ) from None

__all__ = ["function"]

_FUNCTIONS: list[ArrayFunction] = []
"""All functions; an operator finds one by its number, also in a compiled graph."""
_NUMBERS: dict[ArrayFunction, int] = {}
_SEQUENCES = (list, tuple)  # torch.compile of PyTorch 2.6 does not know their union
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
    number, dtype = _number(bound.function), _TYPES[bound.function.dtype]
    operator = _operator(len(bound.inputs), len(bound.function.results))

    def mechanics(*args: Any, params: Mapping[Any, Any] | None = None, **keywords: Any) -> Any:
        arrays, batch = _arrays(bound, dtype, bound.given(args, keywords), params)
        if torch.compiler.is_compiling():
            found = operator(*arrays, number)
            results = found if isinstance(found, _SEQUENCES) else [found]
        else:
            results = _evaluated(number, arrays)
        shaped = [
            x if len(shape) == 1 else x.reshape((*batch, *shape))
            for x, shape in zip(results, bound.shapes, strict=True)
        ]
        return bound.structured(shaped)

    mechanics.__name__ = bound.name
    mechanics.__doc__ = method.__doc__
    return mechanics


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
    if isinstance(x, torch.Tensor) and x.dtype is dtype and x.is_cpu:
        return x
    if x is None:
        return torch.zeros(shape, dtype=dtype)
    if not isinstance(x, torch.Tensor):
        return _tensor(bound, dtype, name, x)
    if x.dtype != dtype:
        kind = np.dtype(str(x.dtype).removeprefix("torch.").replace("bfloat16", "float16"))
        own = bound.function.dtype.name
        check_dtype(bound, name, kind, f"convert it by .to(torch.{own}), or use zw.compile(..., dtype=...)")
        x = x.to(dtype)
    if x.device.type != "cpu":
        raise StateError(
            f"{name!r} is on {x.device}, and {bound.function.name} computes on the CPU: use .cpu()"
        )
    return x


def _tensor(bound: BoundFunction, dtype: Any, name: str, x: Any) -> Any:
    """An argument that is no tensor as one. Raises StateError."""
    own = bound.function.dtype.name
    remedy = f"convert it by .astype({own!r}), or use zw.compile(..., dtype=...)"
    if isinstance(x, _SEQUENCES) and any(isinstance(part, torch.Tensor) for part in x):
        raise StateError(f"{name!r} is a {type(x).__name__} of tensors: join them by torch.stack")
    if isinstance(x, np.ndarray):
        check_dtype(bound, name, x.dtype, remedy)
    try:
        return torch.as_tensor(x, dtype=dtype)
    except (TypeError, ValueError, RuntimeError):
        raise StateError(f"{name!r} is {short_repr(x)}; give a tensor of the type torch.{own}") from None


def _number(function: ArrayFunction) -> int:
    """The number of a function."""
    if function not in _NUMBERS:
        _NUMBERS[function] = len(_FUNCTIONS)
        _FUNCTIONS.append(function)
    return _NUMBERS[function]


def _evaluated(number: int, arrays: Sequence[Any]) -> Sequence[Any]:
    """The results of a function on tensors (*batch, size) with one leading shape."""
    if _is_plain(arrays):
        return _computed(number, arrays)
    transformations = _transformations()
    if torch.compiler.is_compiling() or "Functionalize" in transformations:
        return _operated(number, arrays)
    if transformations.count("Jvp") > 1:
        raise TraceError(
            f"torch.func.jvp and jacfwd are nested around {_FUNCTIONS[number].name}, where PyTorch would "
            "omit derivatives: use torch.func.jacrev or vjp in one of them, as torch.func.hessian does"
        )
    return _Differentiable.apply(number, *arrays)


def _operated(number: int, arrays: Sequence[Any]) -> Sequence[Any]:
    """The results by the operator, which tracers see."""
    found = _operator(len(arrays), len(_FUNCTIONS[number].results))(*arrays, number)
    return found if isinstance(found, _SEQUENCES) else [found]


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
    return torch._C._len_torch_dispatch_stack() > 0 or torch._C._get_tracing_state() is not None


def _transformations() -> list[str]:
    """The kinds of the transformations of torch.func around a call."""
    return [each.key().name for each in torch._C._functorch.get_interpreter_stack() or ()]


def _computed(number: int, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """The results of a function on tensors in memory, which are read as they are, as new tensors."""
    results = _FUNCTIONS[number](*[x.numpy(force=True) for x in arrays])
    # the memory of NumPy's results becomes that of tensors; the order of theirs is always that of the axes
    return tuple([torch.from_numpy(np.ascontiguousarray(x)) for x in results])


class _Differentiable(torch.autograd.Function):
    """A function, by its number and its tensors, under autograd, forward-mode differentiation and torch.func,
    which do not see the derivatives of operators.
    """

    @staticmethod
    def forward(number: int, *arrays: Any) -> tuple[Any, ...]:
        """The results."""
        is_memory = all(type(x) is torch.Tensor for x in arrays) and not _is_traced()
        return _computed(number, arrays) if is_memory else tuple(_operated(number, arrays))

    @staticmethod
    def setup_context(ctx: Any, inputs: Sequence[Any], output: Any) -> None:
        """Keep what the derivatives depend on."""
        ctx.number, *arrays = inputs
        ctx.save_for_backward(*arrays)
        ctx.save_for_forward(*arrays)

    @staticmethod
    def backward(ctx: Any, *weights: Any) -> tuple[Any, ...]:
        """The vector-Jacobian products w^T J."""
        wanted = tuple(k for k, needed in enumerate(ctx.needs_input_grad[1:]) if needed)
        return (None, *_pulled_back(ctx.number, ctx.saved_tensors, weights, wanted))

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Any) -> tuple[Any, ...]:
        """The Jacobian-vector products J t."""
        return _pushed_forward(ctx.number, ctx.saved_tensors, tangents)

    @staticmethod
    def vmap(info: Any, in_dims: Sequence[int | None], number: int, *arrays: Any) -> tuple[Any, Any]:
        """One call for all worlds."""
        found = _Differentiable.apply(number, *_with_worlds(info, in_dims[1:], arrays))
        return found, (0,) * len(found)


def _with_worlds(info: Any, in_dims: Sequence[int | None], arrays: Sequence[Any]) -> list[Any]:
    """Tensors whose first axis is that of vmap."""
    return [
        x.unsqueeze(0).expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)
        for x, dim in zip(arrays, in_dims, strict=False)
    ]


@cache
def _operator(inputs: int, outputs: int) -> Any:
    """The operator for this number of inputs and outputs."""
    arguments = ", ".join(f"Tensor x{k}" for k in range(inputs))
    results = ", ".join(["Tensor"] * outputs)
    schema = f"({arguments}, int function) -> ({results})"

    def compute(*given: Any) -> Any:
        *arrays, number = given
        found = _computed(number, arrays)
        return tuple(found) if outputs > 1 else found[0]

    def fake(*given: Any) -> Any:
        batch = given[0].shape[:-1]
        found = [given[0].new_empty((*batch, size)) for size in _FUNCTIONS[given[-1]].results]
        return tuple(found) if outputs > 1 else found[0]

    def keep(ctx: Any, inputs: Sequence[Any], output: Any) -> None:
        *arrays, ctx.number = inputs
        ctx.save_for_backward(*arrays)

    def backward(ctx: Any, *weights: Any) -> tuple[Any, ...]:
        wanted = tuple(k for k, needed in enumerate(ctx.needs_input_grad[:-1]) if needed)
        return (*_pulled_back(ctx.number, ctx.saved_tensors, weights, wanted), None)

    def batched(info: Any, in_dims: Sequence[int | None], *given: Any) -> Any:
        *arrays, number = given
        found = operator(*_with_worlds(info, in_dims, arrays), number)
        return found, (0,) * outputs if outputs > 1 else 0

    name = f"zwang::evaluate_{inputs}_{outputs}"
    operator = torch.library.custom_op(name, compute, mutates_args=(), device_types="cpu", schema=schema)
    operator.register_fake(fake)
    operator.register_autograd(backward, setup_context=keep)
    operator.register_vmap(batched)
    return operator


def _pulled_back(
    number: int, arrays: Sequence[Any], weights: Sequence[Any], wanted: tuple[int, ...]
) -> list[Any]:
    """The vector-Jacobian products w^T J by the wanted inputs; None by the others."""
    gradients: list[Any] = [None] * len(arrays)
    if not wanted:
        return gradients
    derivative = _FUNCTIONS[number].derivative(wanted)
    J = _evaluated(_number(derivative), arrays)[-1]
    w = torch.cat(list(weights), dim=-1)
    sizes = [derivative.sizes[k] for k in wanted]
    J = J.reshape(*J.shape[:-1], w.shape[-1], sum(sizes))
    # Product and sum are much faster than a matrix product for each world, and in place without new memory,
    # which is not possible where autograd itself batches the weights, as with is_grads_batched=True.
    in_place = _is_plain((J, w)) and not torch._C._functorch.is_legacy_batchedtensor(w)
    weighted = J.mul_(w.unsqueeze(-1)) if in_place else J * w.unsqueeze(-1)
    product = weighted.sum(-2)
    for k, part in zip(wanted, product.split(sizes, dim=-1), strict=True):
        gradients[k] = part
    return gradients


def _pushed_forward(number: int, arrays: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
    """The Jacobian-vector products J t of all results; a tangent is None where it is zero."""
    function = _FUNCTIONS[number]
    wanted = tuple(k for k, tangent in enumerate(tangents) if tangent is not None)
    derivative = function.derivative(wanted)
    J = _evaluated(_number(derivative), arrays)[-1]
    t = torch.cat([tangents[k] for k in wanted], dim=-1)
    J = J.reshape(*J.shape[:-1], sum(function.results), t.shape[-1])
    return (J * t.unsqueeze(-2)).sum(-1).split(list(function.results), dim=-1)
