"""The contacts of a mechanism with their forces: records in one state, arrays for many worlds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from zwang.api.arguments import validation
from zwang.api.compilation.programs import compile_function
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.constraint.context import row_context
from zwang.dynamics.generalised_forces import passive_forces
from zwang.kinematics.configuration import normalized_configuration
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.simulation.constrained import solve_constrained
from zwang.simulation.quantities.contact_forces import WRENCH, ContactState, contact_labels, contact_states

KEPT = 16  # compiled mechanisms


@dataclass(frozen=True)
class ContactRecord:
    """One contact between the shapes a and b, in one state.

    bodies, geoms: the names of a and b. position (3,) [m]: in the world. frame (3, 3): the contact axes as
    rows, in world axes: the normal, from a to b, and two tangents. distance [m]: the signed distance,
    negative for a penetration. force (6,): the force and the torque about `position` on the body of b, in
    contact axes [N, N m]; their opposite acts on the body of a.
    """

    name: str
    bodies: tuple[str, str]
    geoms: tuple[str, str]
    position: np.ndarray
    frame: np.ndarray
    distance: float
    force: np.ndarray

    @property
    def world_force(self) -> np.ndarray:
        """The force on the body of b in world axes (3,) [N]."""
        return self.frame.T @ self.force[:3]


@dataclass(frozen=True)
class ContactArrays:
    """The n candidate contacts of many worlds; the fields are those of `ContactRecord`.

    names, bodies, geoms: of each candidate. active (..., n): whether it acts. position (..., n, 3), frame
    (..., n, 3, 3), distance (..., n) and force (..., n, 6) are NaN, and the force zero, where it does not.
    """

    names: tuple[str, ...]
    bodies: tuple[tuple[str, str], ...]
    geoms: tuple[tuple[str, str], ...]
    active: np.ndarray
    position: np.ndarray
    frame: np.ndarray
    distance: np.ndarray
    force: np.ndarray

    def records(self, *world: int) -> tuple[ContactRecord, ...]:
        """The records of the active contacts of one world, whose index is `world`."""
        return tuple(
            ContactRecord(
                self.names[k],
                self.bodies[k],
                self.geoms[k],
                self.position[world][k],
                self.frame[world][k],
                float(self.distance[world][k]),
                self.force[world][k],
            )
            for k in np.flatnonzero(self.active[world])
        )


@validated_arguments()
def contacts(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    tau: npt.ArrayLike,
    *,
    time: float = 0.0,
) -> tuple[ContactRecord, ...] | ContactArrays:
    """The active contacts with their forces, by Gauss's principle, as in `constrained_dynamics`.

    Those at exactly the margin, such as shapes that touch at the distance zero, are among them with the force
    zero, as in MuJoCo.

    mechanism: a mechanism without symbols.
    q: coordinates (..., nq) [rad, m, unit quaternions]. v: generalised velocities (..., nv) [rad/s, m/s].
    tau: generalised forces (..., nv) in addition to those of springs and dampers [N m, N].
    time: the t of time-dependent constraints [s], default 0.

    Returns a tuple of `ContactRecord` for one state; for arrays with worlds first, evaluated in machine code,
    `ContactArrays`. The components of a force are those of MuJoCo's mj_contactForce, for both cones and every
    condim. The distribution of force over more contacts than determine it is that of least cost for soft
    contacts, and an even one for hard contacts. A hard contact that closes by an impact has no
    force: its approach speed is larger than the change of its velocity in a time step of the options, under
    gravity or under its own free acceleration. Raises ShapeError, StateError, ParameterError or SolveError.
    Source: MuJoCo documentation, Computation, "Contact".
    """
    m = validation.numeric_mechanism(mechanism)
    if max(validation.real_values(x, "q, v, tau").ndim for x in (q, v, tau)) > 1:
        times = np.broadcast_to(np.array([time]), (*np.shape(q)[:-1], 1))
        return contact_arrays(m, *compiled_contacts(m)(q, v, tau, times))
    q, v, tau = (
        validation.configuration(m, q),
        validation.nv_vector(m, v, "v"),
        validation.nv_vector(m, tau, "tau"),
    )
    found = _contact_quantities(m, q, v, tau, time)
    return contact_arrays(m, *(np.asarray(x, float) for x in found.values())).records()


def _contact_quantities(m: Mechanism, q: Any, v: Any, tau: Any, t: Any) -> dict[str, np.ndarray]:
    """The quantities of all candidate contacts in a state, as `flat_contacts` has them."""
    labels, kinematics = contact_labels(m), Kinematics(m.tree, q, v)
    states: list[Any] = []
    if labels:
        context = row_context(m, kinematics, time=t)
        found = solve_constrained(
            m, q, v, tau + passive_forces(m, q, v), kinematics=kinematics,
            inverse_weights=context.inverse_weights, time=t, step=context.step.for_forces,
        )  # fmt: skip
        states = list(contact_states(context, found.rows, found.solution))
    return flat_contacts(states)


def flat_contacts(states: Sequence[ContactState]) -> dict[str, np.ndarray]:
    """active, distance, position, frame and force of all candidate contacts, flat; on any scalar."""
    return {
        "active": np.array([state.active for state in states]),
        "distance": np.array([state.distance for state in states]),
        "position": np.array([x for state in states for x in state.position]),
        "frame": np.array([x for state in states for x in np.ravel(state.frame)]),
        "force": np.array([x for state in states for x in state.force]),
    }


@lru_cache(KEPT)
def compiled_contacts(m: Mechanism) -> CompiledFunction:
    def function(q: Any, v: Any, tau: Any, t: Any) -> dict[str, np.ndarray]:
        return _contact_quantities(m, normalized_configuration(m.tree, q), v, tau, t[0])

    return compile_function(function, {"q": m.nq, "v": m.nv, "tau": m.nv, "time": 1})


def contact_arrays(
    m: Mechanism,
    active: np.ndarray,
    distance: np.ndarray,
    position: np.ndarray,
    frame: np.ndarray,
    force: np.ndarray,
) -> ContactArrays:
    """The arrays (..., n) of `flat_contacts` in their shapes, NaN where contacts are not active."""
    labels, is_active = contact_labels(m), active > 0
    pairs = [(label.pair.a, label.pair.b) for label in labels]

    def shaped(values: np.ndarray, *shape: int) -> np.ndarray:
        values = values.reshape(*active.shape, *shape)
        return np.where(is_active.reshape(*active.shape, *[1] * len(shape)), values, np.nan)

    return ContactArrays(
        names=tuple(label.name for label in labels),
        bodies=tuple((a.body, b.body) for a, b in pairs),
        geoms=tuple((a.name, b.name) for a, b in pairs),
        active=is_active,
        position=shaped(position, 3),
        frame=shaped(frame, 3, 3),
        distance=shaped(distance),
        force=force.reshape(*active.shape, WRENCH),
    )
