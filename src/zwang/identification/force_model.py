"""The forces that a motion needs, as a function of base parameters and of those that enter nonlinearly.

At joint j, with the base regressor Y_b, the load L_j of a bearing, and the measured signal u_j of a motor,

    k_j u_j = Y_bj beta + f_j + mu_j L_j(beta) sign v_j + s_j exp(-(v_j / w_j)^2) sign v_j .

f: forces of the model's inertia, armature, damping, dry friction and springs that are not fitted. mu:
coefficient of load-dependent friction. s, w: force and velocity of Stribeck friction, by which friction at
rest is larger than in motion. k: motor constant, torque constant times gear ratio. The unknowns are
theta = (beta, mu, s, w, k). With closed loops the equations of all joints are multiplied by B^T.
Sources: Armstrong-Helouvry, Dupont, Canudas de Wit, Automatica 30 (1994) 1083; Hamon, Gautier, Garrec,
IEEE/RSJ IROS 2010, 6187 (friction by load).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from zwang.api.compilation.closed_loops import LoopClosure, loop_closure
from zwang.errors import DescriptionError
from zwang.identification.base_parameters import BaseParameters, with_independent
from zwang.identification.bearing_loads import (
    BearingRegressor,
    bearing_regressor,
    load_of,
    nearest_parameters,
)
from zwang.identification.fit_settings import Priors
from zwang.identification.linear_estimation import chunks
from zwang.identification.measurements import Measurements
from zwang.identification.motor_forces import has_dry_friction
from zwang.identification.parameters import OF_INVERSE_DYNAMICS, Parameter, parameters_of
from zwang.identification.regressor import compiled_functions
from zwang.mechanism.constraints import CoulombFriction
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import are_constant, is_zero

LOAD_FRICTION, STRIBECK_FORCE, STRIBECK_VELOCITY, MOTOR = (
    "load friction",
    "Stribeck friction",
    "Stribeck velocity",
    "motor constant",
)
"""The kinds of the parameters that are not linear in the equations."""


@dataclass(frozen=True)
class ForceModel:
    """The model of measured forces. linear: base parameters of inverse dynamics. stribeck, motors: joints by
    name. closure: of a mechanism with closed loops, or None. priors: by which the loads of bearings follow
    parameters that the forces do not tell.
    """

    mechanism: Mechanism
    kinds: tuple[str, ...] | None
    linear: BaseParameters
    stribeck: tuple[str, ...]
    motors: tuple[str, ...]
    closure: LoopClosure | None
    priors: Priors = field(default_factory=dict)

    @cached_property
    def bearings(self) -> BearingRegressor | None:
        """The reactions of the bearings with Coulomb friction."""
        return bearing_regressor(self.mechanism, self.kinds)

    @property
    def laws(self) -> tuple[CoulombFriction, ...]:
        """The laws of load-dependent friction."""
        return () if self.bearings is None else self.bearings.laws

    @property
    def is_linear(self) -> bool:
        """Whether the forces are linear in all unknowns."""
        return not (self.laws or self.stribeck or self.motors)

    @property
    def names(self) -> tuple[str, ...]:
        """The generalised velocities of the forces: all, or the independent ones."""
        return self.mechanism.speed_names if self.closure is None else self.closure.names

    @cached_property
    def base(self) -> BaseParameters:
        """The base parameters of inverse dynamics, and the further unknowns."""
        units = {j.name: ("N", "m/s") if j.kind == "prismatic" else ("N m", "rad/s")
                 for j in self.mechanism.joints}  # fmt: skip
        others = [Parameter(f"mu_{c.name}", LOAD_FRICTION, str(c.joint), "1", c.coefficient)
                  for c in self.laws]  # fmt: skip
        for j in self.stribeck:
            force, speed = units[j]
            others.append(Parameter(f"stribeck_{j}", STRIBECK_FORCE, j, force, 0.0))
            others.append(Parameter(f"stribeck_velocity_{j}", STRIBECK_VELOCITY, j, speed, 0.0))
        others += [Parameter(f"motor_{j}", MOTOR, j, f"{units[j][0]}/unit", 1.0) for j in self.motors]
        return with_independent(self.linear, others) if others else self.linear

    def columns_of(self, kind: str) -> list[int]:
        """The places in theta of the unknowns of a kind."""
        parameters = self.base.parameters
        return [k for k, i in enumerate(self.base.independent) if parameters[i].kind == kind]

    def at(self, samples: Measurements) -> SampledForces:
        """The forces at the states of samples, as a function of theta."""
        regressor = compiled_functions(self.mechanism, self.kinds).regressor
        W = np.empty((*samples.v.shape, len(self.linear)))
        for part in chunks(len(W)):
            Y = regressor(samples.q[part], samples.v[part], samples.a[part])
            W[part] = Y[..., list(self.linear.independent)]
        held, values = self.held
        known = self._known(samples, held, values)
        B = None if self.closure is None else self.closure.transformation(samples.q)
        reactions: list[tuple[np.ndarray, np.ndarray]] = []
        if self.bearings is not None:
            model = np.array([float(p.value) for p in self.linear.parameters])
            G, rest = nearest_parameters(self.linear, model, self.priors)
            # r = R pi(beta) = R G beta + R rest
            R = self.bearings.reactions(samples.q, samples.v, samples.a)
            reactions = [(part @ G, part @ rest) for part in R]
            others = bearing_regressor(self.mechanism, held) if held else None
            if others is not None:
                R = others.reactions(samples.q, samples.v, samples.a)
                both = zip(reactions, R, strict=True)
                reactions = [(by_beta, rest + part @ values) for (by_beta, rest), part in both]
        return SampledForces(self, samples.v, W, known, B, reactions)

    @cached_property
    def held(self) -> tuple[tuple[str, ...], np.ndarray]:
        """The kinds of parameters of inverse dynamics and dry friction that are not fitted, and the model's
        values of these; none if all values are 0.
        """
        fitted = OF_INVERSE_DYNAMICS if self.kinds is None else self.kinds
        friction = ("friction",) if has_dry_friction(self.mechanism) else ()
        kinds = tuple(k for k in (*OF_INVERSE_DYNAMICS, *friction) if k not in fitted)
        values = np.array([float(p.value) for p in parameters_of(self.mechanism, kinds)])
        return (kinds, values) if values.any() else ((), np.zeros(0))

    def _known(self, samples: Measurements, held: tuple[str, ...], values: np.ndarray) -> np.ndarray:
        """The generalised forces (N, nv) of the parameters that are not fitted."""
        known = np.zeros(samples.v.shape)
        if held:
            regressor = compiled_functions(self.mechanism, held).regressor
            for part in chunks(len(known)):
                known[part] = regressor(samples.q[part], samples.v[part], samples.a[part]) @ values
        return known

    def fitted(self, m: Mechanism, parameters: tuple[Parameter, ...], values: np.ndarray) -> Mechanism:
        """The mechanism with the fitted coefficients of Coulomb friction."""
        found = {p.name: float(x) for p, x in zip(parameters, values, strict=True) if p.kind == LOAD_FRICTION}
        return m.replace(constraints=[_with_coefficient(c, found) for c in m.constraints]) if found else m


def _with_coefficient(c: object, found: dict[str, float]) -> object:
    if not isinstance(c, CoulombFriction) or f"mu_{c.name}" not in found:
        return c
    mu, static = found[f"mu_{c.name}"], c.static_coefficient
    return replace(c, coefficient=mu, static_coefficient=None if static is None else max(float(static), mu))


@dataclass(frozen=True)
class SampledForces:
    """The forces of samples. v, W (N, nv, ...): velocities and base regressor of all joints. known (N, nv):
    forces that do not depend on the unknowns. B (N, nv, n): of closed loops, or None. reactions: of each law
    R G (N, rows, base) and R rest (N, rows).
    """

    model: ForceModel
    v: np.ndarray
    W: np.ndarray
    known: np.ndarray
    B: np.ndarray | None
    reactions: list[tuple[np.ndarray, np.ndarray]]

    def reduced(self, x: np.ndarray) -> np.ndarray:
        """B^T x (N, n, ...) of x (N, nv, ...); x without closed loops."""
        if self.B is None:
            return x
        flat = x.reshape(*x.shape[:2], -1)
        return (np.swapaxes(self.B, 1, 2) @ flat).reshape(len(x), self.B.shape[2], *x.shape[2:])

    def forces(self, theta: np.ndarray) -> np.ndarray:
        """The measured signals (N, n) that theta gives."""
        return self.linearised(theta)[0]

    def linearised(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The signals (N, n), and their derivatives (N, n, unknowns) by theta."""
        if self.model.is_linear:
            W = self.reduced(self.W)
            return W @ theta + self.reduced(self.known), W
        m, n = self.model.mechanism, self.W.shape[2]
        J = np.zeros((*self.W.shape[:2], len(theta)))
        J[..., :n] = self.W
        f = self.W @ theta[:n] + self.known
        for law, column, (by_beta, rest) in zip(
            self.model.laws, self.model.columns_of(LOAD_FRICTION), self.reactions, strict=True
        ):
            j = m.joint(str(law.joint)).v.start
            sign, mu = np.sign(self.v[:, j]), theta[column]
            load, by_reactions = load_of(law, by_beta @ theta[:n] + rest)
            f[:, j] += mu * sign * load
            J[:, j, column] = sign * load
            J[:, j, :n] += (mu * sign)[:, None] * np.einsum("tr,trb->tb", by_reactions, by_beta)
        for name, column in zip(self.model.stribeck, self.model.columns_of(STRIBECK_FORCE), strict=True):
            j = m.joint(name).v.start
            v, s, w = self.v[:, j], theta[column], theta[column + 1]
            J[:, j, column] = np.sign(v) * np.exp(-((v / w) ** 2))
            f[:, j] += s * J[:, j, column]
            J[:, j, column + 1] = s * J[:, j, column] * 2 * v**2 / w**3
        f, J = self.reduced(f), self.reduced(J)
        for name, column in zip(self.model.motors, self.model.columns_of(MOTOR), strict=True):
            row, k = self.model.names.index(name), theta[column]
            f[:, row] /= k
            J[:, row] /= k
            J[:, row, column] = -f[:, row] / k
        return f, J


def constraints_besides_friction(m: Mechanism) -> list[Any]:
    """The constraints of a mechanism that are not Coulomb friction of a joint."""
    return [c for c in m.constraints if not isinstance(c, CoulombFriction) or c.joint is None]


def _check_coefficients(law: CoulombFriction) -> None:
    """Raises DescriptionError for coefficients and dimensions that depend on the coordinates."""
    for what in ("coefficient", "static_coefficient", "radius", "collar_radius", "bearing_distance"):
        value = getattr(law, what)
        if value is not None and not are_constant(value):
            raise DescriptionError(
                f"{what} of Coulomb friction {law.name!r} is {value}, which depends on the coordinates; give "
                "a number, or subtract the friction from tau and leave the law out with "
                "mechanism.replace(constraints=...)"
            )


def _check_tendons(m: Mechanism) -> None:
    """Raises DescriptionError for dry friction of a tendon, whose force is in no term of the model."""
    rough = [t.name for t in m.tendons if not is_zero(t.friction)]
    if rough and has_dry_friction(m):
        raise DescriptionError(
            f"tendon {rough[0]!r} has dry friction, which is not fitted; subtract its force from tau, and "
            "set friction=0"
        )


def named(constraints: Sequence[Any]) -> str:
    """The types and names of the first constraints, for a message."""
    return ", ".join(f"{type(c).__name__} {getattr(c, 'name', '')!r}" for c in constraints[:3])


def force_model(
    m: Mechanism,
    kinds: tuple[str, ...] | None,
    linear: BaseParameters,
    stribeck: Sequence[str],
    motors: Sequence[str],
    independent: Sequence[str] | None,
) -> ForceModel:
    """The model of the forces of a mechanism without symbols.

    Raises DescriptionError for constraints that it does not contain, for Coulomb friction whose coefficient
    depends on the coordinates, for dry friction of tendons, and for joints that cannot have these unknowns,
    and UnknownNameError for their names.
    """
    _check_tendons(m)
    other = constraints_besides_friction(m)
    if independent is None and other:
        raise DescriptionError(
            f"mechanism {m.name!r} has constraints ({named(other)}), whose forces would be taken for those "
            "of the parameters; name the motors of closed loops with independent=, replace coupled joints by "
            "zw.Fixed, or leave the constraints out with mechanism.replace(constraints=())"
        )
    for law in m.constraints:
        if isinstance(law, CoulombFriction) and law.joint is not None:
            _check_coefficients(law)
    closure = None if independent is None else loop_closure(m, independent)
    joints = tuple(j.name for j in m.joints) if closure is None else closure.names
    for argument, names in (("stribeck", stribeck), ("motors", motors)):
        for name in names:
            index = m.joint(name)
            if index.v.stop - index.v.start != 1 or (argument == "motors" and name not in joints):
                raise DescriptionError(
                    f"{argument} contains {name!r}, a {index.kind} joint; give joints of one coordinate"
                    + (", of those in independent=" if closure is not None else "")
                )
        if len(set(names)) < len(names):
            raise DescriptionError(f"{argument} is {list(names)}; give each joint once")
    if motors and set(motors) >= set(joints):
        raise DescriptionError(
            "motors contains all joints, so that all parameters could be multiplied by one number; leave out "
            "a joint whose motor constant is known, and multiply its measurements by it"
        )
    return ForceModel(m, kinds, linear, tuple(stribeck), tuple(motors), closure)
