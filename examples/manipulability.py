"""Manipulability: ellipsoids, singular directions, a map over the workspace, and the payload of an arm.

The script writes manipulability_two_link.png, manipulability_map.png and manipulability_panda.png.
"""

from __future__ import annotations

import numpy as np

import zwang as zw

PANDA = zw.robot.from_dh(
    d=[0.333, 0, 0.316, 0, 0.384, 0, 0.107],
    a=[0, 0, 0, 0.0825, -0.0825, 0, 0.088],
    alpha=np.array([0, -1, 1, 1, -1, 1, 1]) * np.pi / 2,
    limits=[(-2.9, 2.9), (-1.76, 1.76), (-2.9, 2.9), (-3.07, -0.07), (-2.9, 2.9), (-0.02, 3.75), (-2.9, 2.9)],
    convention="modified",
    name="panda",
)


def two_link() -> None:
    """The two-link arm of Fu, "ME331 Robot Modeling and Control": mu = a1 a2 |sin theta2|."""
    arm = zw.robot.from_dh(d=[0, 0], a=[1, 1], alpha=[0, 0], name="two-link arm")
    for q in [(0.3, 0.5), (0.9, 1.2), (1.6, 1.6), (0.4, 0.0)]:
        w = zw.robot.manipulability(arm, q, "tip")
        print(
            f"q = {q}: mu = {w.measure:.4f} (a1 a2 |sin theta2| = {abs(np.sin(q[1])):.4f}), "
            f"kappa = {w.condition:.3g}; {w.singularity()}"
        )
    zw.plot_ellipsoids(arm, [(0.3, 0.5), (0.9, 1.2), (1.6, 1.6)], "tip", path="manipulability_two_link.png")
    zw.plot_manipulability(zw.robot.workspace(arm, "tip", samples=50_000), path="manipulability_map.png")


def seven_axes() -> None:
    """A redundant arm: its null space has one dimension, which a secondary objective for the posture uses."""
    q = np.array([0.4, 0.5, -0.6, -1.7, 0.8, 1.9, -0.3])
    w = zw.robot.manipulability(PANDA, q, "tip")
    print(
        f"\npanda: mu = {w.measure:.4f}, redundancy {w.redundancy}, d mu / dq = {np.round(w.gradient(), 3)}"
    )
    pose = zw.frame_pose(PANDA, q, "tip")
    better = zw.robot.solve_ik(PANDA, "tip", pose, q0=q, posture=[0, 0, 0, -1.57, 0, 1.87, 0])
    found = zw.robot.manipulability(PANDA, better.q, "tip")
    print(
        f"the same pose with joints nearer to the middle of their ranges: "
        f"q = {np.round(better.q, 3)}, mu = {found.measure:.4f}"
    )
    load = zw.robot.payload(PANDA, q, "tip", [87, 87, 87, 87, 12, 12, 12])
    print(
        f"largest static force: {load.largest_force((0, 0, -1)):.0f} N downwards, "
        f"{load.ellipsoid.lengths.min():.0f} N in every direction"
    )
    zw.plot_ellipsoids(PANDA, q, "tip", path="manipulability_panda.png")


if __name__ == "__main__":
    two_link()
    seven_axes()
