"""Tests whose files use MJCF elements that an older MuJoCo does not know are skipped with a reason."""

import mujoco
import pytest

from zwang.errors import LoadError

OLD = int(mujoco.mj_versionString().split(".")[0]) < 4


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    try:
        return (yield)
    except LoadError as error:
        if OLD and "Schema violation: unrecognized" in str(error):
            pytest.skip(f"MuJoCo {mujoco.mj_versionString()}: {error}")
        raise
