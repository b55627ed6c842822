"""Finite Fourier series of joint motions, periodic, that begin and end at rest.

Each coordinate is
    q(t) = c + sum_k (A_k sin(k w t) - B_k cos(k w t)) / (k w),  k = 1 ... K,  w = 2 pi / duration,
with v(0) = sum_k A_k = 0 and a(0) = sum_k k w B_k = 0. These are two linear equations, so that the
coefficients are a linear function of 2 K - 1 free numbers z with c, and so are q, v and a.
Source: Swevers, Ganseman, Tukel, De Schutter, Van Brussel, IEEE Trans. Robotics and Automation 13 (1997) 730.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import null_space


@dataclass(frozen=True)
class FourierSeries:
    """The matrices Q, V, A (times, free numbers) of one coordinate: q = Q z, v = V z, a = A z.

    The first of the free numbers z is the constant c.
    """

    Q: np.ndarray
    V: np.ndarray
    A: np.ndarray

    @classmethod
    def at(cls, times: np.ndarray, duration: float, harmonics: int) -> FourierSeries:
        """The series at these times (T,) [s]. harmonics: K, at least 2."""
        k = np.arange(1, harmonics + 1)
        w = 2 * np.pi * k / duration
        sine, cosine = np.sin(np.outer(times, w)), np.cos(np.outer(times, w))
        one, zero = np.ones((len(times), 1)), np.zeros((len(times), 1))
        rest = np.zeros((2, 1 + 2 * harmonics))
        rest[0, 1 : 1 + harmonics], rest[1, 1 + harmonics :] = 1, w
        basis = np.zeros((1 + 2 * harmonics, 2 * harmonics - 1))
        basis[0, 0] = 1
        basis[1:, 1:] = null_space(rest[:, 1:])
        return cls(
            np.hstack([one, sine / w, -cosine / w]) @ basis,
            np.hstack([zero, cosine, sine]) @ basis,
            np.hstack([zero, -sine * w, cosine * w]) @ basis,
        )

    def motion(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, v, a (..., times, joints) of the free numbers z (..., joints, numbers)."""
        q, v, a = (np.swapaxes(z @ M.T, -1, -2) for M in (self.Q, self.V, self.A))
        return q, v, a

    def gradient(self, by_q: np.ndarray, by_v: np.ndarray, by_a: np.ndarray) -> np.ndarray:
        """The gradient (joints, numbers) by z from those by q, v, a, each (times, joints)."""
        return by_q.T @ self.Q + by_v.T @ self.V + by_a.T @ self.A
