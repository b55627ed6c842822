"""Settings for all tests.

Every run tries the same examples (`--hypothesis-profile=search` looks for new ones), and tests
that need a program: `@pytest.mark.needs("cc")`."""

import gc
import os
import shutil
import sys
from collections.abc import Callable
from functools import partial

# one process for each core runs the tests, so the threads of BLAS would only wait for each other
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from zwang.compiler.runtime.threads import cores  # noqa: E402

try:
    from hypothesis.internal.conjecture import providers
except ImportError:  # of an early hypothesis, which has no such examples
    providers = None

settings.register_profile(
    "zwang", deadline=None, max_examples=25, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", settings.get_profile("zwang"), max_examples=100, derandomize=False)
settings.load_profile("zwang")
# without this, some examples would be numbers from the source of the modules that happen to be imported
if hasattr(providers, "_get_local_constants") and hasattr(providers, "_local_constants"):
    no_constants = providers._local_constants
    providers._get_local_constants = lambda: no_constants

PROGRAMS = {
    "chromium": ("google-chrome", "chromium", "chromium-browser", "chrome"),
    "cc": () if sys.platform == "win32" else ("cc",),
    "clang": ("clang",),
    "cmake": ("cmake",),
    "node": ("node",),
    "ptxas": ("ptxas",),
    "nvidia-smi": ("nvidia-smi",),
}
"""The optional programs of tests, by the names under which they are looked for."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(program): needs an optional program of tests/conftest.py")


def pytest_xdist_auto_num_workers() -> int:
    """One process more than cores: tests that start programs wait for them a fifth of the time."""
    return cores() + 1


def with_room(call: Callable[[], None]) -> None:
    """Call a function with room for its frames in one piece of memory.

    Python takes the memory of frames in pieces of 16 KB. A loop whose calls happen to begin and end at the
    boundary of two pieces maps and unmaps one in every call, which makes a test ten times slower.
    """
    call()


# a frame of 550 KB has a piece of 1 MB, the rest of which is for the frames of all calls below it
with_room.__code__ = with_room.__code__.replace(co_stacksize=70_000)


def pytest_collection(session: pytest.Session) -> None:
    gc.disable()  # what is imported and collected stays


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let Python look for garbage in what tests create, and not as often as for a small program: a tenth of
    the time would go into it.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    item.runtest = partial(with_room, item.runtest)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the first test that needs a missing program, with their number; deselect the others."""
    for program, names in PROGRAMS.items():
        if any(map(shutil.which, names)):
            continue
        needing = [
            item for item in items if (mark := item.get_closest_marker("needs")) and program in mark.args
        ]
        if needing:
            reason = f"{program} is not installed: {len(needing)} tests need it"
            needing[0].add_marker(pytest.mark.skip(reason=reason))
            config.hook.pytest_deselected(items=needing[1:])
            items[:] = [item for item in items if item not in needing[1:]]
