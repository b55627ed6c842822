"""The equation of motion H(q) a + h = sum J_k^T w_k of a tree of five solids, and Gauss's measure, against
the numbers of Pinocchio.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.cases import case, references
from zwang.errors import DescriptionError

AXES = {"X": (1, 0, 0), "Y": (0, 1, 0), "Z": (0, 0, 1)}
KINDS = {"R": zw.Revolute, "P": zw.Prismatic}
ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
FOLDER, NAME = "rigid_body", "A11_gauss_solids_tree"


def tree() -> tuple[zw.Mechanism, dict[str, float]]:
    """The case's solids, joints "1" to "5", with a frame at each centre of mass, and the values of the
    inertias, which remain symbols.

    The inertias of the case are random and violate the triangle inequality, so zwang rejects their values.
    """
    parameters = case(FOLDER, NAME)["parameters"]
    bodies, frames, numbers = [], [], {}
    for k, body in enumerate(parameters["bodies"], start=1):
        kind, axis = body["joint"]
        parent = "world" if body["parent"] == 0 else f"solid {body['parent']}"
        entries = {f"I{k}_{i}{j}": body["inertia_com"][i][j] for i, j in ENTRIES}
        numbers |= entries
        joint = KINDS[kind](f"{k}", axis=AXES[axis])
        bodies.append(zw.Body(f"solid {k}", joint, parent, body["p"], np.array(body["R"]), mass=body["mass"],
                              com=body["com"], inertia=sp.symbols(list(entries), real=True)))  # fmt: skip
        frames.append(zw.Frame(f"centre {k}", f"solid {k}", body["com"]))
    return zw.Mechanism("tree", bodies, gravity=parameters["gravity"], frames=frames), numbers


def near(found: Any, expected: Any) -> None:
    """Assert equality within the tolerance of the case, relative to the largest number."""
    expected = np.asarray(expected, float)
    bound = case(FOLDER, NAME)["tolerance"] * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(np.asarray(found, float), expected, rtol=0, atol=bound)


@pytest.fixture(scope="module")
def fast() -> tuple[Any, dict[str, float]]:
    """The tree, compiled, and its inertias."""
    m, numbers = tree()
    return zw.compile(m), numbers


@pytest.mark.parametrize("reference", references(FOLDER, NAME))
def test_the_equation_of_motion_equals_pinocchio(reference: dict[str, Any], fast: Any) -> None:
    compiled, numbers = fast
    q, v, tau = np.array(reference["q"]), np.array(reference["qd"]), np.zeros(5)
    near(compiled.mass_matrix(q, params=numbers), reference["H"])
    near(compiled.bias_forces(q, v, params=numbers), reference["h"])
    wrenches = zip(reference["J_com_world"], reference["wrenches_world_at_com"], strict=True)
    for k, (J, w) in enumerate(wrenches, start=1):
        found = compiled.frame_jacobian(q, f"centre {k}", params=numbers)
        near(found, J)
        tau += found.T @ np.array(w)
    near(tau, reference["JTw"])
    near(compiled.forward_dynamics(q, v, tau, params=numbers), reference["qdd"])
    near(compiled.inverse_dynamics(q, v, reference["qdd"], params=numbers), reference["JTw"])


@pytest.mark.parametrize("reference", references(FOLDER, NAME))
def test_the_acceleration_minimises_gauss_measure(reference: dict[str, Any], fast: Any) -> None:
    """Z is a quadratic form with the matrix H about its minimum, which is at the acceleration of the case."""
    compiled, numbers = fast
    q, v, H = np.array(reference["q"]), np.array(reference["qd"]), np.array(reference["H"])

    def measure(a: np.ndarray) -> float:
        return float(compiled.zwang_of(q, v, reference["JTw"], a, params=numbers))

    least = measure(np.array(reference["qdd"]))
    for d in np.vstack([np.eye(5), -np.eye(5)]):
        assert measure(reference["qdd"] + d) - least == pytest.approx(d @ H @ d / 2, rel=1e-9)


def test_the_inertias_of_the_case_violate_the_triangle_inequality() -> None:
    m, numbers = tree()
    with pytest.raises(DescriptionError, match=r"solid 1.*triangle inequality"):
        m.subs(numbers)
