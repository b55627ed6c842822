"""A headless browser for the tests of one module."""

from collections.abc import Iterator

import pytest

from tests.viewer.chromium import Browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium with an empty profile."""
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()
