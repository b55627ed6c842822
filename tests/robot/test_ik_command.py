"""`zwang ik` says what `zw.robot.solve_ik` says."""

from __future__ import annotations

import numpy as np
import pytest

import zwang as zw
from tests.robot import dh
from zwang.cli import main


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    """Run the command on a UR5 described as JSON; gives its status and what it printed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ur5.json").write_text(dh.arm("ur5").to_json())

    def run(*arguments: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(["ik", "ur5.json", *arguments])
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out + printed.err

    return run


def test_a_pose_by_roll_pitch_and_yaw(call):
    status, text = call("--frame", "tip", "--position", "0.3", "0.2", "0.4", "--rpy", "3.0", "0.1", "-0.5")
    assert status == 0 and "converged" in text
    q = [float(line.split()[1]) for line in text.splitlines() if line.startswith("q")]
    pose = zw.frame_pose(dh.arm("ur5"), q, "tip")
    np.testing.assert_allclose(pose.p, (0.3, 0.2, 0.4), atol=1e-5)
    R = pose.R
    assert np.arctan2(R[2, 1], R[2, 2]) == pytest.approx(3.0, abs=1e-5)
    assert -np.arcsin(R[2, 0]) == pytest.approx(0.1, abs=1e-5)
    assert np.arctan2(R[1, 0], R[0, 0]) == pytest.approx(-0.5, abs=1e-5)


def test_what_is_out_of_reach_says_so_with_status_1(call):
    status, text = call("--frame", "tip", "--position", "3", "0", "0")
    assert status == 1 and "unreachable" in text


def test_two_attitudes_are_one_too_many(call):
    attitude = ["--rpy", "0", "0", "0", "--quaternion", "1", "0", "0", "0"]
    status, text = call("--frame", "tip", "--position", "0.3", "0.2", "0.4", *attitude)
    assert status == 1 and "not by both" in text
