"""The regressor Y(q, v, a) of a mechanism: tau = Y pi, compiled for batches, and symbolic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zwang.api.arguments import validation
from zwang.api.compilation.cache_key import IdentityKey
from zwang.api.compilation.closed_loops import loop_closure
from zwang.api.compilation.compiled import compile_function
from zwang.compiler.derivatives.differentiate import vjp
from zwang.dynamics.actuators import Inputs
from zwang.dynamics.generalised_forces import passive_forces_of, unclipped_actuator_forces
from zwang.dynamics.inertial_regressor import inertial_regressor
from zwang.errors import DescriptionError, ParameterError, ShapeError, StateError
from zwang.identification.parameters import (
    MOTOR,
    WITH_CONTROL,
    Parameter,
    body_origins,
    kinds_of,
    parameters_of,
)
from zwang.kinematics import configuration
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.labelled_arrays import without_labels
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.symbols import values_for_symbols
from zwang.mechanism.tendon_elements import Tendon
from zwang.mechanism.type_validation import short_repr, validated_arguments
from zwang.scalar import are_constant, is_scalar, sign


@validated_arguments()
def regressor(
    mechanism: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    kinds: Sequence[str] | None = None,
    control: ArrayLike | None = None,
    independent: Sequence[str] | None = None,
    compiled: bool = True,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Regressor Y (..., nv, parameters) of inverse dynamics, tau = Y pi, from the wrenches of the bodies.

    q (..., nq), v (..., nv), a (..., nv): states and generalised accelerations [SI], or single states of
    SymPy expressions, for which Y is symbolic. kinds: kinds of parameters, see `parameters`; by default
    those of which `zw.inverse_dynamics` consists. compiled: False evaluates on floats. The elements of
    labelled arrays, as of recordings, are read by their labels.
    out: an array for the result, of float64 and contiguous, which is returned. Calls with many states take a
    quarter less time if they write into the same memory.
    control (..., inputs): the inputs of the motors, such as currents, in the order of `mechanism.inputs`, for
    the kind "motor". tau is then the part of the forces that the motors do not exert: 0 where only motors
    drive the mechanism.
    independent: names of n joints whose velocities u determine all others, v = B(q) u, in a mechanism with
    closed loops, as many as its degrees of freedom. The result is then B^T Y (..., n, parameters), and
    B^T Y pi the forces at these joints, without those of the loops. The states must satisfy the loops: see
    `zw.identify.closed_loop_motion`. By default constraints are not included.

    The columns are those of `zw.identify.parameters(mechanism, kinds)`: first m, m c (3), Ixx, Ixy, Iyy,
    Ixz, Iyz and Izz of each moving body, with the inertia about the origin of the body's frame and in its
    axes; this is the order of Pinocchio's `computeJointTorqueRegressor`. A body that is rigidly attached to
    another one is part of it. Column of a joint's armature: a; of its damping: v, and of other dampers and
    springs: their forces at unit coefficients; of its dry friction: sign v; of an offset: 1; of the constant
    of a motor: minus its generalised forces (nv,) at the constant 1.

    Raises ShapeError, StateError, UnknownNameError for another kind, DescriptionError for out= with symbols,
    compiled=False or independent=, ParameterError where the numbers of the geometry are symbols and the
    states are floats, and DescriptionError for constant wrenches, gravity compensation and drag of a fluid,
    for independent= with symbols or without hard constraints, for "motor" without control or control
    without "motor", and for actuators whose force is not linear in constants;
    DependentVelocitiesError where the independent velocities do not determine the others.
    Source: Atkeson, An, Hollerbach (1986); for loops Khalil, Dombre (2002), Section 12.6.
    """
    mechanism = validation.checked_mechanism(mechanism)
    names = None if kinds is None else kinds_of(kinds, WITH_CONTROL)
    labels = _labels(mechanism, names, control)
    sizes = {name: len(elements) for name, elements in labels.items()}
    given = {
        name: without_labels(x, labels[name], name)
        for name, x in zip(labels, (q, v, a, control), strict=False)
    }
    scalars = [_scalars(x, name) for name, x in given.items()]
    is_symbolic = any(x.dtype == object and not are_constant(*x.flat) for x in scalars)
    if out is not None and (is_symbolic or not compiled or independent is not None):
        raise DescriptionError(
            "out= is for compiled regressors of numbers, without independent=; leave it out"
        )
    if is_symbolic:
        if independent is not None:
            raise DescriptionError(
                "independent= needs states of numbers; leave it out for symbols, and multiply Y by B^T"
            )
        for (name, size), x in zip(sizes.items(), scalars, strict=True):
            if x.shape != (size,):
                raise ShapeError(f"symbolic {name} must have the shape ({size},); its shape is {x.shape}")
        return symbolic_regressor(mechanism, parameters_of(mechanism, names), *scalars)
    states = checked_states(mechanism, given, sizes)
    _check_geometry(mechanism)
    if compiled:
        Y = compiled_functions(mechanism, names).regressor(*states, out=out)
    else:
        batch, chosen = states[0].shape[:-1], parameters_of(mechanism, names)
        rows = [symbolic_regressor(mechanism, chosen, *(x[i] for x in states)) for i in np.ndindex(*batch)]
        Y = np.array(rows, dtype=float).reshape(*batch, mechanism.nv, len(chosen))
    return Y if independent is None else reduced(mechanism, independent, states[0], Y)


def reduced(mechanism: Mechanism, independent: Sequence[str], q: np.ndarray, x: np.ndarray) -> np.ndarray:
    """B^T x (..., n, columns) of x (..., nv, columns) at q (..., nq), with v = B u."""
    return np.swapaxes(loop_closure(mechanism, independent).transformation(q), -1, -2) @ x


def parameters(mechanism: Mechanism, kinds: Sequence[str] | None = None) -> tuple[Parameter, ...]:
    """The parameters pi of a mechanism, as `Parameter`s in the order of the columns of its `regressor`.

    kinds: some of "inertia", "armature", "damping", "friction", "offset", "stiffness" and "motor". By default
    those of which `zw.inverse_dynamics` consists: the inertia of every moving body, and armature, damping and
    stiffness where the mechanism has them. If they are named, "armature", "damping" and "friction" give a
    parameter for every joint, "offset" gives one for every generalised velocity, "stiffness" for every spring
    of the mechanism, and "motor" those of every motor: its force by its input, and of an actuator also those
    by its length and velocity. Springs or dampers whose forces differ by the coefficient alone count as one,
    with the sum of their coefficients.
    Raises UnknownNameError for another kind, and DescriptionError for constant wrenches, gravity compensation
    and drag of a fluid, and with "motor" for actuators whose force is not linear in constants.
    """
    return parameters_of(validation.checked_mechanism(mechanism), kinds)


def _labels(mechanism: Mechanism, kinds: tuple[str, ...] | None, control: Any) -> dict[str, tuple[str, ...]]:
    """The names of the elements of q, v and a, and of the control if it is given. Raises DescriptionError
    where it is missing.
    """
    speeds = mechanism.speed_names
    labels = {"q": mechanism.coordinate_names, "v": speeds, "a": speeds}
    if ("motor" in (kinds or ())) != (control is not None):
        raise DescriptionError('give control together with the kind "motor", or neither')
    if control is not None and not mechanism.inputs:
        raise DescriptionError(f'mechanism {mechanism.name!r} has no motors; leave out control and "motor"')
    return labels if control is None else labels | {"control": mechanism.inputs}


def checked_states(
    mechanism: Mechanism, given: Mapping[str, Any], sizes: Mapping[str, int]
) -> tuple[np.ndarray, ...]:
    """q, v, a and further values as floats (..., size) with the same leading shape.

    Raises ShapeError or StateError, naming the argument.
    """
    arrays = [validation.real_values(x, name) for name, x in given.items()]
    for (name, size), x in zip(sizes.items(), arrays, strict=True):
        if x.ndim == 0 or x.shape[-1] != size:
            raise ShapeError(f"{name} must have the shape (..., {size}); its shape is {x.shape}")
        if not np.isfinite(x).all():
            first = tuple(int(i) for i in np.argwhere(~np.isfinite(x))[0])
            raise StateError(f"{name}{list(first)} is {x[first]}; every element of {name} must be finite")
    for joint in mechanism.joints:
        if joint.kind in ("ball", "free"):
            part = slice(joint.q.stop - 4, joint.q.stop)
            if not (np.linalg.norm(arrays[0][..., part], axis=-1) > 1e-9).all():
                raise StateError(f"the quaternion of joint {joint.name!r}, q[..., {part.start}:{part.stop}], "
                                 "is zero; give a unit quaternion (w, x, y, z)")  # fmt: skip
    if all(x.shape[:-1] == arrays[0].shape[:-1] for x in arrays):
        return tuple(map(np.ascontiguousarray, arrays))
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    return tuple(np.ascontiguousarray(np.broadcast_to(x, (*batch, x.shape[-1]))) for x in arrays)


def symbolic_regressor(
    mechanism: Mechanism, chosen: Sequence[Parameter], q: Any, v: Any, a: Any, control: Any = ()
) -> np.ndarray:
    """Y (nv, parameters) over the generic scalar, at one state. control (inputs,): for motor constants."""
    inputs = dict(zip(mechanism.inputs, control, strict=False))
    kinematics = Kinematics(mechanism.tree, configuration.normalized_configuration(mechanism.tree, q), v)
    columns: list[np.ndarray] = []
    if any(p.kind == "mass" for p in chosen):
        origins = [(origin.link, origin.p) for origin in body_origins(mechanism)]
        columns += list(inertial_regressor(kinematics, origins, a).T)
    columns += [_column(mechanism, p, kinematics, a, inputs) for p in chosen[len(columns) :]]
    return np.stack(columns, axis=1) if columns else np.zeros((mechanism.nv, 0))


def _column(
    mechanism: Mechanism, parameter: Parameter, kinematics: Kinematics, a: Any, inputs: Mapping[str, Any]
) -> np.ndarray:
    """The column (nv,) of a parameter that is not inertial."""
    element = parameter.element
    if parameter.kind == MOTOR:  # on a joint, a frame or a tendon
        driven = mechanism.replace(forces=(element,), constraints=(), sensors=())
        given = Inputs(inputs, {}, 0, mechanism.options.timestep)
        return -unclipped_actuator_forces(driven, kinematics, given)
    if element is not None:
        is_tendon = isinstance(element, Tendon)
        unit = mechanism.replace(
            forces=() if is_tendon else (element,),
            tendons=(element,) if is_tendon else (),
            constraints=(),
            sensors=(),
        )
        return -passive_forces_of(unit, kinematics)
    column: list[Any] = [0] * mechanism.nv
    if parameter.kind == "offset":
        column[mechanism.speed_names.index(parameter.of)] = 1
        return np.array(column)
    joint = mechanism.joint(parameter.of)
    for k in range(joint.v.start, joint.v.stop):
        column[k] = {
            "armature": lambda k: a[k],
            "friction": lambda k: sign(kinematics.v[k]),
        }[parameter.kind](k)
    return np.array(column)


def _check_geometry(mechanism: Mechanism) -> None:
    """Raises ParameterError where symbols of the mechanism are more than parameters of its bodies."""
    if mechanism.symbols:
        raise ParameterError(
            f"mechanism {mechanism.name!r} has symbols without values; give them with "
            f"{values_for_symbols(mechanism)}, or give q, v and a as symbols too"
        )


@dataclass(frozen=True)
class CompiledRegressor:
    """The regressor of a mechanism in machine code, and its vector-Jacobian products."""

    mechanism: Mechanism
    chosen: tuple[Parameter, ...]
    _regressor: Any
    _products: list[Any]

    def regressor(
        self, q: np.ndarray, v: np.ndarray, a: np.ndarray, *control: np.ndarray, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Y (..., nv, parameters), in `out` if it is given. control: the inputs (..., inputs), with motor
        constants. Raises ShapeError for an `out` of another shape, and StateError for one of another type or
        order.
        """
        shape = (*q.shape[:-1], self.mechanism.nv, len(self.chosen))
        if out is None:
            return self._regressor(q, v, a, *control).reshape(shape)
        if out.shape != shape:
            raise ShapeError(f"out must have the shape {shape}; its shape is {out.shape}")
        if out.dtype != float or not out.flags.c_contiguous or not out.flags.writeable:
            raise StateError(
                f"out must be contiguous, writeable and of float64; it is of {out.dtype}, with the strides "
                f"{out.strides}"
            )
        self._regressor.compute_into((q, v, a, *control), [out.reshape(*q.shape[:-1], -1)])
        return out

    def gradients(
        self, q: np.ndarray, v: np.ndarray, a: np.ndarray, C: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The gradients (..., n) of sum_ij C_ij Y_ij by q, v and a, in reverse mode.

        C (..., nv, parameters): the cotangents of Y.
        """
        if not self._products:
            self._products.append(self._compiled_products())
        flat = C.reshape(*C.shape[:-2], C.shape[-2] * C.shape[-1])
        return self._products[0](q, v, a, flat)

    def _compiled_products(self) -> Any:
        m = self.mechanism
        size = m.nv * len(self.chosen)

        def products(q: Any, v: Any, a: Any, cotangents: Any) -> Any:
            Y = symbolic_regressor(m, self.chosen, q, v, a)
            return tuple(vjp(Y, x, cotangents) for x in (q, v, a))

        return compile_function(products, {"q": m.nq, "v": m.nv, "a": m.nv, "cotangents": size})


def compiled_functions(mechanism: Mechanism, kinds: tuple[str, ...] | None = None) -> CompiledRegressor:
    """The compiled regressor of a mechanism without symbols; kept for the mechanisms used last."""
    return _compiled(IdentityKey(mechanism), kinds)


@lru_cache(maxsize=32)
def _compiled(same: IdentityKey, kinds: tuple[str, ...] | None) -> CompiledRegressor:
    m = same.mechanism
    chosen = parameters_of(m, kinds)
    sizes = {"q": m.nq, "v": m.nv, "a": m.nv}
    if any(p.kind == MOTOR for p in chosen):
        sizes["control"] = len(m.inputs)
    function = compile_function(lambda *states: symbolic_regressor(m, chosen, *states), sizes)
    return CompiledRegressor(m, chosen, function, [])


def _scalars(values: Any, name: str) -> np.ndarray:
    """Numbers or SymPy expressions as an array. Raises StateError for other values."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        array = np.array([None])
    if array.dtype == object and not all(is_scalar(x) for x in array.flat):
        raise StateError(f"{name} is {short_repr(values)}; it must hold numbers or SymPy expressions")
    return array
