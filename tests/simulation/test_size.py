"""Mechanisms that are too large are rejected at once, with their size and the reason; the work for others is
linear in their size.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import zwang as zw
from tests.work import call_count
from zwang.api.arguments import memory_limit, validation
from zwang.collision import candidate_count, candidate_pairs
from zwang.errors import CompileError, SimulationError, UnsupportedError
from zwang.mechanism.samples import double_pendulum
from zwang.viewer.html_page import page_html

PENDULUM = double_pendulum()


def chain(count: int, **joint: Any) -> zw.Mechanism:
    """A chain of `n` hinges."""
    bodies = []
    for k in range(count):
        hinge = zw.Revolute(f"hinge {k}", axis=(0, 1, 0), **joint)
        parent = f"link {k - 1}" if k else "world"
        bodies.append(
            zw.Body(
                f"link {k}",
                hinge,
                parent,
                (0, 0, -0.1),
                mass=0.1,
                com=(0, 0, -0.05),
                inertia=(1e-4,) * 3,
                geometry=zw.Sphere(0.02),
            )
        )
    return zw.Mechanism(f"chain of {count}", bodies)


# --------------------------------------------------------------------------------------------- machine code


@pytest.fixture(scope="module")
def long_chain() -> zw.Mechanism:
    return chain(10_000)


def test_a_chain_of_ten_thousand_hinges_is_rejected_with_its_size_and_cost(long_chain):
    words = r"'chain of 10000' has nv = 10,000 speeds; .* at most 5,000, .* about 4 minutes and 2\.5 GB"
    for call in (
        lambda: zw.simulate(long_chain, duration=1),
        lambda: zw.compile(long_chain),
        lambda: zw.simulate(long_chain.replace(name="chain of 10000"), worlds=10, duration=1),
    ):
        with pytest.raises(CompileError, match=words):
            call()


def test_it_is_rejected_within_a_second(long_chain):
    """Before any algorithm has run over the tree: a few calls a body, where one evaluation of the dynamics
    takes hundreds.
    """

    def refused() -> None:
        with pytest.raises(CompileError):
            zw.simulate(long_chain, duration=1)

    bodies = len(long_chain.bodies)
    assert call_count(refused) < 50 * bodies


@pytest.mark.parametrize(
    "function", ["mass_matrix", "forward_dynamics_derivatives", "inverse_dynamics_derivatives"]
)
def test_functions_with_a_large_mass_matrix_are_rejected(function):
    m, zero = chain(450), np.zeros(450)
    with pytest.raises(
        CompileError, match=rf"mass matrix of 101,475 elements .*code of {function} .* at most 100,000"
    ):
        zw.compile(m).prepare(function)
    limited = chain(450, limits=(-1, 1))
    for call in (
        lambda: zw.simulate(limited, duration=1),
        lambda: zw.compile(limited).step(zero, zero, zero),
        lambda: zw.compile(limited).rollout(zero, zero, zero, steps=2),
    ):
        with pytest.raises(CompileError, match="code of the constraint solver has each of them"):
            call()


def test_the_counted_size_is_that_of_the_mass_matrix():
    """Elements at and below the diagonal: a chain of n has n (n + 1) / 2, a free body 21, and branches do
    not meet.
    """
    legs = [
        zw.Body(f"leg {k}", zw.Revolute(f"hip {k}"), "trunk", mass=1, inertia=(1, 1, 1)) for k in range(2)
    ]
    trunk = zw.Body("trunk", zw.Free("root"), mass=1, inertia=(1, 1, 1))
    m = zw.Mechanism(bodies=[trunk, *legs])
    H = zw.mass_matrix(m, np.array([0, 0, 0, 0.5, 0.5, 0.5, 0.5, 0.3, 0.4]))
    assert np.count_nonzero(np.tril(H)) < 21 + 2 * 7 + 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validation, "MOST_PAIRS", 35)
        validation.check_compilable(m, "mass_matrix")
        patch.setattr(validation, "MOST_PAIRS", 34)
        with pytest.raises(CompileError, match="35 elements"):
            validation.check_compilable(m, "mass_matrix")
        patch.setattr(validation, "MOST_SPEEDS", 7)
        with pytest.raises(CompileError, match="nv = 8 speeds"):
            validation.check_compilable(m)


# ----------------------------------------------------------------------------- without machine code, contacts


def shapes_on_bodies(bodies: int, shapes: int, **surface: int) -> zw.Mechanism:
    """Free bodies with several spheres each."""
    spheres = [zw.Sphere(0.01, position=(k, 0, 0), surface=zw.Surface(**surface)) for k in range(shapes)]
    return zw.Mechanism(
        "cloud",
        [
            zw.Body(f"body {k}", zw.Free(f"joint {k}"), mass=1, inertia=(1, 1, 1), geometry=spheres)
            for k in range(bodies)
        ],
    )


def test_steps_of_a_long_chain_in_python_are_linear_in_its_length():
    def work(count: int) -> Callable[[], Any]:
        m = chain(count).replace(options=zw.Options(contact=False))
        m.tree  # noqa: B018  which is kept
        return lambda: zw.simulate(m, duration=0.001, step=0.001, compiled=False, progress=False)

    work(50)()
    assert call_count(work(1000)) < 11 * call_count(work(100))


def test_what_is_too_large_to_step_in_python_is_rejected_at_once(long_chain):
    uncompiled = {"duration": 1, "compiled": False, "progress": False}
    for m, words in (
        (long_chain, r"'chain of 10000' has 49,995,000 pairs of shapes .* at most 5,000 .* compiled=True"),
        (shapes_on_bodies(3_334, 1, contype=0), r"nv = 20,004 speeds; .* about 8 s a step"),
        (chain(450, limits=(-1, 1)), r"a mass matrix of 101,475 elements .* at most 100,000"),
        (shapes_on_bodies(101, 1), r"5,050 pairs of shapes"),
    ):
        with pytest.raises(SimulationError, match=words):
            zw.simulate(m, **uncompiled)

        def refused(m: zw.Mechanism = m) -> None:
            with pytest.raises(SimulationError):
                zw.simulate(m, **uncompiled)

        assert call_count(refused) < 60 * len(m.bodies)


def test_too_many_pairs_of_shapes_are_rejected_before_they_are_built():
    m = shapes_on_bodies(3, 500)
    for call in (
        lambda: candidate_pairs(m),
        lambda: zw.simulate(m, duration=1, progress=False),
        lambda: zw.contacts(m, m.neutral, np.zeros(m.nv), np.zeros(m.nv)),
    ):
        with pytest.raises(
            UnsupportedError, match=r"1,500 shapes, of which 750,000 pairs may touch; .*600,000"
        ):
            call()


def test_shapes_on_one_link_and_with_other_bits_are_no_candidates():
    """Shapes that cannot touch each other take no time, and the count is that of the pairs."""
    assert candidate_count(shapes_on_bodies(1, 3_000)) == 0
    assert candidate_count(shapes_on_bodies(20, 100, contype=0)) == 0
    m = shapes_on_bodies(4, 3)
    assert candidate_count(m) == len(candidate_pairs(m)) == 6 * 9
    assert candidate_count(m.replace(options=zw.Options(contact=False))) == 0


# -------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("worlds", [10**9, 10**12, 10**30])
def test_too_many_worlds_are_rejected_with_the_memory_they_would_need(worlds, monkeypatch):
    monkeypatch.setattr(memory_limit, "machine_memory", lambda: 16 * 10**9)
    with pytest.raises(
        SimulationError, match=rf"{worlds:,} worlds need about .* of memory .* this machine has 16 GB"
    ):
        zw.simulate(PENDULUM, worlds=worlds, duration=1)


def test_the_reported_memory_is_that_of_the_recording(monkeypatch):
    """Two coordinates, three times two speeds, and three numbers of energy and time: 11 floats a world and
    sample, twice.
    """
    monkeypatch.setattr(memory_limit, "machine_memory", lambda: 10**9)
    words = (
        r"1,000,000,000 worlds need about 352 GB of memory \(2 samples of 11 numbers each\), "
        r".* at most about 1,420,454 worlds"
    )
    with pytest.raises(SimulationError, match=words):
        zw.simulate(PENDULUM, worlds=10**9, duration=1)
    with pytest.raises(
        SimulationError, match=r"1,000 worlds need about 17 GB of memory \(100,001 samples of 11 numbers"
    ):
        zw.simulate(PENDULUM, worlds=1000, duration=100, step=1e-3, record=1)
    assert (
        zw.simulate(PENDULUM, worlds=1000, duration=0.002, step=1e-3, progress=False).sizes["world"] == 1000
    )


def test_the_memory_of_this_machine_is_known():
    assert 2**28 < memory_limit.machine_memory() <= memory_limit.UNKNOWN


@pytest.mark.parametrize(
    ("size", "text"), [(999, "999 bytes"), (16_000_000_000, "16 GB"), (10**20, "100,000 PB")]
)
def test_memory_is_reported_in_suitable_units(size, text):
    assert memory_limit.size_text(size) == text


# ------------------------------------------------------------------------------------------- files and pages


@pytest.mark.parametrize(
    "work", [page_html, lambda m: zw.Mechanism.from_json(m.to_json()), lambda m: m._repr_html_()]
)
def test_the_work_for_files_and_pages_is_linear_in_the_bodies(work):
    """Ten times the bodies, ten times the calls: 10,000 bodies take seconds, not minutes."""
    small, large = chain(50), chain(500)
    for m in (small, large):
        m.tree, m.symbols  # noqa: B018  which are kept
    work(small)
    assert call_count(lambda: work(large)) < 11 * call_count(lambda: work(small))


def test_the_page_of_ten_thousand_bodies_contains_all_of_them(long_chain):
    page = page_html(long_chain)
    scene = json.loads(page.split('type="application/json" id="data">', 1)[1].split("</script>", 1)[0])
    assert len(scene["models"][0]["bodies"]) == len(scene["models"][0]["shapes"]) == 10_000
    assert len(page) < 50e6
