"""Buffers of programs with long arrays: they are kept between calls, and released with the machine code."""

from __future__ import annotations

import gc
import threading
import tracemalloc

import numpy as np
import pytest

from zwang.compiler.frontend.trace import trace
from zwang.compiler.pipeline import optimise
from zwang.compiler.runtime.bound_rollout import Rollout
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.scalar import empty, fori_loop

PAGES, LENGTH = 1000, 5000  # rows of an array, and numbers in a row, more than in a page of memory


def total(x):
    """PAGES times x, by an array that lies on as many pages."""

    def write(i, array):
        return array.set((i, 0), x[0])

    array = fori_loop(0, PAGES, write, empty((PAGES, LENGTH)), unroll=False)
    return fori_loop(0, PAGES, lambda i, found: found + array[i, 0], 0.0, unroll=False)


PROGRAM = optimise(trace(total, {"x": (1,)}))


def compiled() -> CompiledFunction:
    return CompiledFunction(PROGRAM, lanes=2, threads=2, cache=False)


def test_the_memory_of_a_call_is_that_of_the_call_before():
    """By the page faults that the system counts."""
    resource = pytest.importorskip("resource")
    function = compiled()
    assert function(np.array([2.0])) == 2 * PAGES
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for k in range(20):
        assert function(np.array([float(k)])) == k * PAGES
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 2 * PAGES


def test_calls_at_once_have_buffers_of_their_own():
    function, wrong = compiled().prepare(), list[float]()

    def call(k: float) -> None:
        x = np.array([[k], [-k], [2 * k]])
        for _ in range(50):
            if not np.array_equal(function(x), PAGES * x):
                wrong.append(k)

    threads = [threading.Thread(target=call, args=(float(k),)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def traced_bytes() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def test_the_buffers_are_released_with_the_rollout_and_with_the_code():
    """By the memory that Python counts: a rollout has a buffer, and so has the code."""
    size, x = 8 * PAGES * LENGTH, np.ones((1, 1))
    tracemalloc.start()
    try:
        function = compiled().prepare(worlds=1)
        before = traced_bytes()
        rollout = Rollout(function, [x], 1, {})
        rollout.run(1)
        assert traced_bytes() - before > size
        del rollout
        assert traced_bytes() - before < size / 100
        assert function(x) == PAGES
        del function
        assert traced_bytes() < size / 100
    finally:
        tracemalloc.stop()
