"""Settings for all tests.

Every run tries the same examples (`--hypothesis-profile=search` looks for new ones), and tests
that need a program: `@pytest.mark.needs("cc")`."""

import os
import shutil
import sys

# one process for each core runs the tests, so the threads of BLAS would only wait for each other
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

settings.register_profile(
    "zwang", deadline=None, max_examples=25, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", settings.get_profile("zwang"), max_examples=100, derandomize=False)
settings.load_profile("zwang")

PROGRAMS = {
    "chromium": ("google-chrome", "chromium", "chromium-browser", "chrome"),
    "cc": () if sys.platform == "win32" else ("cc",),
    "clang": ("clang",),
    "cmake": ("cmake",),
    "node": ("node",),
    "ptxas": ("ptxas",),
}
"""The optional programs of tests, by the names under which they are looked for."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(program): needs an optional program of tests/conftest.py")


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
