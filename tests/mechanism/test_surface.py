"""Valid and invalid contact attributes of surfaces."""

import pytest

import zwang as zw
from zwang.errors import DescriptionError


def test_restitution_requires_a_hard_surface_and_the_range_0_to_1():
    with pytest.raises(DescriptionError, match=r"restitution is 1\.5; it must be from 0 to 1"):
        zw.Surface(hard=True, restitution=1.5)
    with pytest.raises(
        DescriptionError,
        match="not hard: give hard=True, or model the rebound of a soft surface by a low damping",
    ):
        zw.Surface(restitution=0.5)
    surface = zw.Surface(hard=True, restitution=0.5)
    body = zw.Body(
        "ball",
        joint=zw.Free("free"),
        mass=1,
        inertia=(1, 1, 1),
        geometry=[zw.Sphere(radius=1, surface=surface)],
    )
    mechanism = zw.Mechanism(bodies=[body])
    assert zw.Mechanism.from_json(mechanism.to_json()) == mechanism
