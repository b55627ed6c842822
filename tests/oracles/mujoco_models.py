"""Random MJCF models, and the quantities that MuJoCo computes for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np

SIZES = {
    "sphere": ".1",
    "capsule": ".05 .2",
    "cylinder": ".08 .1",
    "box": ".1 .2 .15",
    "ellipsoid": ".1 .15 .2",
}


def numbers(values: Any) -> str:
    """Numbers as the text of an attribute, without loss of precision."""
    return " ".join(repr(float(x)) for x in np.atleast_1d(values))


class RandomModel:
    """A tree of bodies with random joints, inertias, springs, dampers and actuators."""

    def __init__(self, seed: int, count: int = 5):
        self.rng = np.random.default_rng(seed)
        self.actuators: list[str] = []
        self.joints = 0
        children: list[list[int]] = [[] for _ in range(count)]
        roots = [0]
        for i in range(1, count):
            parent = int(self.rng.integers(-1, i))
            (roots if parent < 0 else children[parent]).append(i)
        bodies = "".join(self.body(i, children, root=True) for i in roots)
        self.xml = (
            '<mujoco model="random"><compiler angle="radian" autolimits="true"/>'
            f'<option gravity="{numbers(self.rng.normal(size=3) * 5)}"/>'
            f'<worldbody>{bodies}<geom type="plane" size="1 1 1" pos="0 0 -3"/></worldbody>'
            f"<actuator>{''.join(self.actuators)}</actuator></mujoco>"
        )

    def vector(self, size: int = 3, scale: float = 1.0) -> str:
        return numbers(self.rng.normal(size=size) * scale)

    def body(self, i: int, children: list[list[int]], root: bool) -> str:
        joints = self.free() if root and self.rng.random() < 0.4 else self.chain()
        quaternion = self.vector(4)
        inner = "".join(self.body(k, children, root=False) for k in children[i])
        site = f'<site name="s{i}" pos="{self.vector()}" quat="{self.vector(4)}"/>'
        self.actuators.append(f'<general site="s{i}" gear="{self.vector(6)}"/>')
        pose = f'pos="{self.vector()}" quat="{quaternion}"'
        return f'<body name="b{i}" {pose}>{joints}{self.mass()}{site}{inner}</body>'

    def mass(self) -> str:
        if self.rng.random() < 0.5:
            kind = str(self.rng.choice(list(SIZES)))
            pose = f'pos="{self.vector(scale=0.2)}" quat="{self.vector(4)}"'
            return f'<geom type="{kind}" size="{SIZES[kind]}" {pose}/>'
        moments = np.sort(self.rng.uniform(0.1, 0.19, size=3))
        pose = f'pos="{self.vector(scale=0.3)}" quat="{self.vector(4)}"'
        return f'<inertial mass="{self.rng.uniform(0.5, 3)}" {pose} diaginertia="{numbers(moments)}"/>'

    def free(self) -> str:
        self.joints += 1
        name = f"j{self.joints}"
        self.actuators.append(f'<motor joint="{name}" gear="{self.vector(6)}"/>')
        return f'<joint name="{name}" type="free" damping="{self.rng.uniform(0, 1)}"/>'

    def chain(self) -> str:
        kinds = [str(k) for k in self.rng.choice(["hinge", "slide", "ball"], size=self.rng.integers(0, 4))]
        if kinds.count("ball"):  # at most three rotational and three translational coordinates
            kinds = ["slide", "ball"] if "slide" in kinds else ["ball"]
        return "".join(self.joint(kind) for kind in kinds)

    def joint(self, kind: str) -> str:
        self.joints += 1
        name = f"j{self.joints}"
        ball = kind == "ball"
        common = f'name="{name}" type="{kind}" pos="{self.vector()}" armature="{self.rng.uniform(0, 0.3)}"'
        damping = numbers(self.rng.uniform(0, 1, size=self.rng.integers(1, 4)))
        spring = numbers(self.rng.uniform(0, 5, size=1 if ball else self.rng.integers(1, 4)))
        scalar = (
            ""
            if ball
            else f'axis="{self.vector()}" ref="{self.rng.normal()}" springref="{self.rng.normal()}"'
        )
        self.actuators.append(self.actuator(name, ball))
        return f'<joint {common} damping="{damping}" stiffness="{spring}" {scalar}/>'

    def actuator(self, joint: str, ball: bool) -> str:
        gear = self.vector(3 if ball else 1)
        if ball:
            return f'<motor joint="{joint}" gear="{gear}" ctrlrange="-1 1"/>'
        kinds = (
            f'<motor joint="{joint}" gear="{gear}" ctrlrange="-.5 .5"/>',
            f'<position joint="{joint}" gear="{gear}" kp="3" kv=".4" forcerange="-2 2"/>',
            f'<velocity joint="{joint}" gear="{gear}" kv="2"/>',
            f'<intvelocity joint="{joint}" gear="{gear}" kp="4" actrange="-1 1"/>',
            f'<damper joint="{joint}" gear="{gear}" kv="3" ctrlrange="0 1"/>',
            f'<cylinder joint="{joint}" gear="{gear}" timeconst=".3" area="2" bias="1 2 3"/>',
            f'<general joint="{joint}" gear="{gear}" armature=".2" damping=".3" gaintype="affine" '
            'gainprm="1 2 3" biastype="affine" biasprm="3 2 1"/>',
            f'<general joint="{joint}" gear="{gear}" dyntype="filterexact" dynprm=".2" gainprm="2"/>',
        )
        return str(self.rng.choice(kinds))


def written(xml: str, folder: Path) -> Path:
    """The path of a file with the model."""
    path = folder / "model.xml"
    path.write_text(xml)
    return path


def state_of(model: Any, rng: np.random.Generator) -> Any:
    """MuJoCo's data in a random state, after mj_forward."""
    data = mujoco.MjData(model)
    data.qpos[:] = rng.normal(size=model.nq)
    mujoco.mj_normalizeQuat(model, data.qpos)
    data.qvel[:] = rng.normal(size=model.nv)
    data.ctrl[:] = rng.normal(size=model.nu)
    data.act[:] = rng.normal(size=model.na)
    mujoco.mj_forward(model, data)
    return data


def full_mass_matrix(model: Any, data: Any) -> np.ndarray:
    """Dense mass matrix of MuJoCo's data."""
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    return M


class RandomTree:
    """The text of a model of up to seven bodies: every joint type and combination, fixed bodies, bodies with
    slide joints alone, armature, tendons.
    """

    KINDS = (
        (), (), ("hinge",), ("slide",), ("ball",), ("slide", "slide"), ("slide", "slide", "slide"),
        ("slide", "hinge"), ("hinge", "slide"), ("hinge", "hinge"), ("slide", "ball"),
        ("slide", "slide", "hinge"),
    )  # fmt: skip

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.count, self.scalars = int(self.rng.integers(1, 8)), []
        parents = [int(self.rng.integers(-1, i)) for i in range(self.count)]
        roots = "".join(self.body(i, parents) for i in range(self.count) if parents[i] < 0)
        tendon = "".join(
            f'<joint joint="{name}" coef="{self.rng.normal()!r}"/>' for name in self.some(self.scalars)
        )
        fixed = f'<fixed name="t">{tendon}</fixed>' if tendon else ""
        self.text = (
            f'<mujoco><compiler angle="radian"/><worldbody>{roots}</worldbody>'
            f"<tendon>{fixed}</tendon></mujoco>"
        )

    def some(self, names: list[str]) -> list[str]:
        return [name for name in names if self.rng.random() < 0.5]

    def body(self, i: int, parents: list[int]) -> str:
        root = parents[i] < 0
        plain = self.rng.random() < 0.5  # axes parallel to those of the body, as in most models
        kinds = (
            ("free",)
            if root and self.rng.random() < 0.15
            else self.KINDS[self.rng.integers(0, len(self.KINDS))]
        )
        axes = self.rng.permutation(np.eye(3)) if plain else self.rng.normal(size=(3, 3))
        joints = "".join(
            self.joint(f"j{i}_{k}", kind, plain, axes[k] * self.rng.choice([-1, 1]))
            for k, kind in enumerate(kinds)
        )
        inner = "".join(self.body(k, parents) for k in range(self.count) if parents[k] == i)
        pose = f'pos="{numbers(self.rng.normal(size=3))}" quat="{numbers(self.rng.normal(size=4))}"'
        simple = ' simple="false"' if self.rng.random() < 0.1 else ""
        return f'<body name="b{i}" {pose}{simple}>{joints}{self.mass(plain)}{inner}</body>'

    def joint(self, name: str, kind: str, plain: bool, axis: np.ndarray) -> str:
        armature = f'armature="{self.rng.choice([0, 0.4, 30])}"'
        if kind == "free":
            return f'<joint name="{name}" type="free" {armature}/>'
        where = "" if plain else f'pos="{numbers(self.rng.normal(size=3))}"'
        if kind == "ball":
            return f'<joint name="{name}" type="ball" {armature} {where}/>'
        self.scalars.append(name)
        scalar = f'axis="{numbers(axis)}" ref="{self.rng.normal()!r}"'
        return f'<joint name="{name}" type="{kind}" {scalar} {armature} {where}/>'

    def mass(self, plain: bool) -> str:
        if self.rng.random() < 0.4:
            kinds = [str(kind) for kind in self.rng.choice(list(SIZES), size=self.rng.integers(1, 3))]
            pose = "" if plain else f'pos="{numbers(self.rng.normal(size=3))}" quat=".9 .1 .3 -.2"'
            return "".join(f'<geom type="{kind}" size="{SIZES[kind]}" {pose}/>' for kind in kinds)
        moments = self.rng.uniform(0.1, 0.19, size=3)
        if self.rng.random() < 0.3:
            return f'<inertial pos="0 0 0" mass="1.7" fullinertia="{numbers([*moments, 0, 0, 0])}"/>'
        pose = (
            'pos="0 0 0"'
            if plain
            else f'pos="{numbers(self.rng.normal(size=3))}" quat="{numbers(self.rng.normal(size=4))}"'
        )
        mass, diagonal = repr(float(self.rng.uniform(0.5, 3))), numbers(np.sort(moments))
        return f'<inertial mass="{mass}" {pose} diaginertia="{diagonal}"/>'
