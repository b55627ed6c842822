"""Forces of a fluid on bodies, as on ellipsoids: MuJoCo's ellipsoid model, and their slopes.

With the velocity u of the ellipsoid's centre relative to the fluid, its angular velocity w, both in the axes
of the ellipsoid, and its semi-axes r, force f and torque n about the centre are

    f = p x w + k_M rho V w x u + f_K - (3 pi mu D + rho |u| (k_b A + k_s (A_max - A))) u
    n = p x u + l x w - (pi mu D^3 + rho |m|) w

with the momenta p = rho m_v u and l = rho I_v w of the fluid that moves along, the volume V, the mean
diameter D, the area A of the projection along u, its maximum A_max, the lift f_K by the Kutta-Joukowski
theorem, and the moments m_i = (k_a I_i + k_s (I_max - I_i)) w_i.
Source: MuJoCo documentation, Computation, "Fluid forces", "Ellipsoid model"; Andersen, Pesavento, Wang, J.
Fluid Mech. 541 (2005) 65.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zwang.algebra.norms import norm, root_of_square
from zwang.algebra.rotations import cross, skew
from zwang.dynamics.fluid_drag import motion_in_fluid
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.force_elements import EllipsoidDrag
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import maximum, minimum

LEAST = 1e-300  # of a divisor, which is zero at rest


def ellipsoid_force(mechanism: Mechanism, drag: EllipsoidDrag, kinematics: Kinematics) -> np.ndarray:
    """Generalised force tau (nv,) = J^T (f, n) of the fluid around an ellipsoid [N m, N]."""
    J, velocity = motion_in_fluid(mechanism, drag, kinematics)
    return J.T @ ellipsoid_wrench(drag, velocity)


def ellipsoid_damping(
    mechanism: Mechanism, drag: EllipsoidDrag, kinematics: Kinematics, *, symmetric: bool
) -> np.ndarray:
    """The damping matrix (nv, nv) of the fluid around an ellipsoid: -J^T B J with B = d (f, n) / d (u, w).

    symmetric: take the symmetric part of B.
    """
    J, velocity = motion_in_fluid(mechanism, drag, kinematics)
    B = ellipsoid_slope(drag, velocity)
    B = (B + B.T) / 2 if symmetric else B
    return -J.T @ B @ J


def ellipsoid_wrench(drag: EllipsoidDrag, velocity: np.ndarray) -> np.ndarray:
    """Force and torque (6,) of the fluid at the relative velocity (u, w) (6,), in the ellipsoid's axes."""
    u, w = velocity[:3], velocity[3:]
    p, angular = _momenta(drag, u, w)
    normal, num, denom = _projection(drag, u)
    area, speed = _area(num, denom), norm(u)
    # f_K = k_K rho A cos(alpha) (s x u) x u with the normal s of the projected area
    lift = drag.kutta * drag.density * num / maximum(LEAST, speed * denom) * area
    f = cross(p, w) + _magnus(drag) * cross(w, u) + lift * cross(cross(normal, u), u)
    resistance = _stokes(drag)[0] + drag.density * speed * _quadratic(drag, area)
    moments = [k * x for k, x in zip(_angular(drag), w, strict=True)]
    turning = _stokes(drag)[1] + drag.density * norm(moments)
    n = cross(p, u) + cross(angular, w) - turning * w
    return np.concatenate([f - resistance * u, n])


def ellipsoid_slope(drag: EllipsoidDrag, velocity: np.ndarray) -> np.ndarray:
    """B (6, 6), the derivative of `ellipsoid_wrench` by the relative velocity.

    Divisors have a lower bound, so that B is finite at rest.
    """
    u, w = velocity[:3], velocity[3:]
    p, angular = _momenta(drag, u, w)
    mass, inertia = (
        np.diag([drag.density * x for x in y]) for y in (drag.virtual_mass, drag.virtual_inertia)
    )
    B = np.zeros((6, 6), int).astype(object)
    # p x w and k w x u; p x u and l x w
    B[:3, :3] = -skew(w) @ mass + _magnus(drag) * skew(w) + _drag_slope(drag, u) + _lift_slope(drag, u)
    B[:3, 3:] = skew(p) - _magnus(drag) * skew(u)
    B[3:, :3] = skew(p) - skew(u) @ mass
    B[3:, 3:] = skew(angular) - skew(w) @ inertia + _turning_slope(drag, w)
    return B


def _momenta(drag: EllipsoidDrag, u: Any, w: Any) -> tuple[np.ndarray, np.ndarray]:
    """Linear and angular momentum (3,) of the fluid that moves with the ellipsoid."""
    p = [drag.density * m * x for m, x in zip(drag.virtual_mass, u, strict=True)]
    angular = [drag.density * I * x for I, x in zip(drag.virtual_inertia, w, strict=True)]
    return np.array(p), np.array(angular)


def _squares(drag: EllipsoidDrag) -> np.ndarray:
    """The squares (r_j r_k)^2 (3,) of the products of the other two semi-axes."""
    x, y, z = drag.semiaxes
    return np.array([(y * z) * (y * z), (z * x) * (z * x), (x * y) * (x * y)])


def _projection(drag: EllipsoidDrag, u: Any) -> tuple[np.ndarray, Any, Any]:
    """The normal s (3,) of the area projected along u, not of unit length, s.u, and s.s."""
    s = _squares(drag) * u
    return s, s @ u, s @ s


def _area(num: Any, denom: Any) -> Any:
    """The area A = pi sqrt(s.s / s.u) of the projection; 0 at rest."""
    return math.pi * root_of_square(denom / maximum(LEAST, num))


def _axes(drag: EllipsoidDrag) -> tuple[Any, Any]:
    """The longest and the middle semi-axis."""
    x, y, z = drag.semiaxes
    longest, shortest = maximum(maximum(x, y), z), minimum(minimum(x, y), z)
    return longest, x + y + z - longest - shortest


def _quadratic(drag: EllipsoidDrag, area: Any) -> Any:
    """k_b A + k_s (A_max - A)."""
    longest, middle = _axes(drag)
    return area * drag.blunt + drag.slender * (math.pi * longest * middle - area)


def _stokes(drag: EllipsoidDrag) -> tuple[Any, Any]:
    """The coefficients 3 pi mu D and pi mu D^3 of linear resistance."""
    D = 2 / 3 * sum(drag.semiaxes)
    return drag.viscosity * 3 * math.pi * D, drag.viscosity * math.pi * D * D * D


def _magnus(drag: EllipsoidDrag) -> Any:
    """k_M rho V."""
    x, y, z = drag.semiaxes
    return drag.magnus * drag.density * (4 / 3 * math.pi * x * y * z)


def _angular(drag: EllipsoidDrag) -> list[Any]:
    """k_a I_i + k_s (I_max - I_i) for the three axes."""
    longest, middle = _axes(drag)
    greatest = 8 / 15 * math.pi * middle * longest**4
    r = drag.semiaxes
    moments = [8 / 15 * math.pi * r[i] * maximum(r[i - 2], r[i - 1]) ** 4 for i in range(3)]
    return [drag.angular * I + drag.slender * (greatest - I) for I in moments]


def _turning_slope(drag: EllipsoidDrag, w: np.ndarray) -> np.ndarray:
    """The derivative (3, 3) of -(pi mu D^3 + rho |m|) w by w."""
    k = np.array(_angular(drag))
    density = drag.density / maximum(LEAST, norm(k * w))
    squares = -density * k * k * w
    return np.outer(w, squares) + (w @ squares - _stokes(drag)[1]) * np.eye(3, dtype=int)


def _drag_slope(drag: EllipsoidDrag, u: np.ndarray) -> np.ndarray:
    """The derivative (3, 3) of the resistance -(3 pi mu D + rho |u| (...)) u by u."""
    _, num, denom = _projection(drag, u)
    a, uu, one = _squares(drag), u * u, np.eye(3, dtype=int)
    area, speed = _area(num, denom), norm(u)
    # dA/du_i = pi / sqrt(num^3 denom) a_i u_i sum_j a_j u_j^2 (a_i - a_j)
    factor = drag.density * speed * (drag.blunt - drag.slender)
    factor = factor * math.pi / maximum(LEAST, root_of_square(num * num * num * denom))
    by_area = np.array([factor * a[i] * u[i] * ((a * uu) @ (a[i] - a)) for i in range(3)])
    quadratic = drag.density * _quadratic(drag, area) / maximum(LEAST, speed)
    D = -quadratic * (np.outer(u, u) + (u @ u) * one) - np.outer(u, by_area)
    return D - _stokes(drag)[0] * one


def _lift_slope(drag: EllipsoidDrag, u: np.ndarray) -> np.ndarray:
    """The derivative (3, 3) of the lift f_K by u."""
    _, num, denom = _projection(drag, u)
    a, uu, square = _squares(drag), u * u, u @ u
    scale = math.pi * drag.kutta * drag.density / maximum(LEAST, root_of_square(denom * num * square))
    across = np.array([(a[i] - a) @ uu for i in range(3)])
    inner = a * a * (num / maximum(LEAST, denom)) - a + num / maximum(LEAST, square)
    differences = np.array([[a[j] - a[i] for j in range(3)] for i in range(3)])
    D = (2 * num * differences + np.outer(across, inner)) * np.outer(u, u)
    return scale * (D - num * np.diag(across))
