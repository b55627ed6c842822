"""The benchmark of tuning constants names constants that exist, with the value in use between the others."""

import ast

import numpy as np
import pytest

from benchmarks.constants import TUNINGS, changed_copy, value_of


@pytest.mark.parametrize("tuning", TUNINGS, ids=lambda tuning: tuning.name)
def test_the_value_in_use_is_between_the_others(tuning):
    low, high = sorted(np.min(ast.literal_eval(value)) for value in tuning.others)
    assert low <= np.min(ast.literal_eval(value_of(tuning))) <= high
    assert value_of(tuning) not in tuning.others


def test_the_copy_differs_in_one_line(tmp_path):
    tuning = TUNINGS[0]
    copy = changed_copy(tmp_path, tuning, "17") / "zwang" / "collision" / "sweep.py"
    assert "\nFEWEST_PAIRS = 17  #" in copy.read_text()
