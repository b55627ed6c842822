"""Random MJCF models accelerate, sense and step as in MuJoCo, or are refused by name."""

import warnings

import pytest

from tests.oracles.random_mjcf import differences

LARGEST = 1e-6  # of curved shapes, whose contacts MuJoCo finds by iteration


@pytest.mark.parametrize("seed", range(16))
def test_random_models_agree_with_mujoco(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = differences(seed)
    assert set(found) == {"acceleration", "sensors", "step"}
    assert max(found.values()) < LARGEST, found
