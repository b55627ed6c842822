"""Inverse kinematics: two iteration tables of a lecture, then 10,000 poses of a six-axis arm from a URDF file
in one call.

The script prints the iteration tables of Fu, "ME331 Robot Modeling and Control", the explanation for a target
that is out of reach, and the time of the batch.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import zwang as zw

# The joints of a six-axis arm as in a URDF: origin (x y z) and (roll pitch yaw) in the previous link; UR5's
# DH table.
JOINTS = [
    ("0 0 0.089159", "0 0 0"),
    ("0 0 0", "1.5707963267948966 0 0"),
    ("-0.425 0 0", "0 0 0"),
    ("-0.39225 0 0.10915", "0 0 0"),
    ("0 -0.09465 0", "1.5707963267948966 0 0"),
    ("0 0.0823 0", "-1.5707963267948966 0 0"),
]


def six_axis_urdf() -> str:
    """The arm as URDF text; each link has a mass of 1 kg."""
    rows = ['<robot name="six_axis">', '  <link name="base"/>']
    parent = "base"
    for k, (xyz, rpy) in enumerate(JOINTS, start=1):
        rows += [
            f'  <joint name="joint{k}" type="revolute"><parent link="{parent}"/><child link="link{k}"/>',
            f'    <origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="0 0 1"/>',
            '    <limit lower="-3.14159" upper="3.14159" effort="150" velocity="3"/></joint>',
            f'  <link name="link{k}"><inertial><mass value="1"/>',
            '    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>',
        ]
        parent = f"link{k}"
    return "\n".join([*rows, "</robot>"])


def lecture_tables() -> None:
    """Both methods of the lecture on the two-link arm, with the target (0.2, 1.3) and the step
    length 0.75.
    """
    arm = zw.robot.from_dh(d=[0, 0], a=[1, 1], alpha=[0, 0], name="two-link arm")
    settings = {"alpha": 0.75, "tolerance": 1e-4}
    inverse = zw.robot.solve_ik(
        arm, "tip", (0.2, 1.3), method="jacobian_inverse", q0=(0.25, 0.75), **settings
    )
    print("Jacobian inverse:", inverse, inverse.trace, sep="\n")
    transpose = zw.robot.solve_ik(arm, "tip", (0.2, 1.3), method="transpose", q0=(0.3, 0.4), **settings)
    print("\nJacobian transpose, from (0.3, 0.4):", transpose, transpose.trace, sep="\n")
    far = zw.robot.solve_ik(arm, "tip", (0.2, 2.3))
    print(f"\nOut of reach: {far.explain()}")


def ten_thousand_poses() -> None:
    """Solve for 10,000 random reachable poses of the arm, which is read from a URDF file."""
    path = Path("six_axis.urdf")
    path.write_text(six_axis_urdf())
    arm = zw.load(path)
    space = zw.robot.workspace(arm, "link6", samples=10_000)
    targets = (space.rotations, space.positions)
    zw.robot.solve_ik(arm, "link6", targets)  # the first call compiles
    start = time.perf_counter()
    solution = zw.robot.solve_ik(arm, "link6", targets)
    seconds = time.perf_counter() - start
    print(f"\n{arm.name}: {solution}")
    print(
        f"{1e6 * seconds / 10_000:.1f} microseconds per pose, {solution.iterations.mean():.1f} iterations, ",
        end="",
    )
    position, orientation = np.max(solution.residual.position), np.max(solution.residual.orientation)
    print(f"largest residual {position:.1e} m, {orientation:.1e} rad")


if __name__ == "__main__":
    lecture_tables()
    ten_thousand_poses()
