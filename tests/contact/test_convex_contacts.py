"""Contacts of convex shapes found by iteration: MuJoCo's depth, normal and position wherever it finds a single one."""

import numpy as np
import pytest

from tests.contact.models import Couple
from tests.contact.test_gaps import BY_ITERATION, DEEP


@pytest.mark.parametrize("kinds", BY_ITERATION, ids="-".join)
def test_single_contacts_of_convex_shapes_are_mujocos(kinds):
    """Where sides nearly lie along each other MuJoCo adds contacts at a choice of its own; elsewhere the nearest points are unique."""
    couple, rng, compared = Couple(*kinds), np.random.default_rng(5), 0
    for _ in range(24):
        q = couple.configuration(rng, aligned=False)
        theirs = couple.contacts(q)
        if len(theirs) != 1 or theirs[0][0] < -DEEP:
            continue
        ours, (distance, position, frame) = couple.gaps(q), theirs[0]
        nearest = min(ours, key=lambda gap: gap.distance)
        assert abs(nearest.distance - distance) < 1e-9
        assert np.abs(nearest.frame[0] - frame[0]).max() < 2e-5  # MuJoCo's own ends at 1e-10 of the distance
        assert np.abs(nearest.position - position).max() < 5e-6
        compared += 1
    assert compared >= 3
