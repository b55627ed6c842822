"""Random MJCF models, and the differences of accelerations, sensors and one step from those of MuJoCo.

    python -m tests.oracles.random_mjcf 300        compares models 0 ... 299 and lists those that differ

A model has one to three trees of bodies over a plane, with joints, geoms, actuators, tendons, equalities,
sensors and options at random; what does not compile is drawn again.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import mujoco
import numpy as np

import zwang as zw
from zwang.dynamics.generalised_forces import controlled_forces
from zwang.errors import UnsupportedError
from zwang.integrator.fixed_step import State
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.mechanism.force_elements import Actuator
from zwang.simulation.step import step, step_settings

JOINTS = ("hinge", "hinge", "slide", "ball")
GEOMS = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")
FLAGS = ("frictionloss", "limit", "spring", "damper", "gravity", "clampctrl", "filterparent", "refsafe",
         "eulerdamp", "island", "equality", "contact")  # fmt: skip
BODY_SENSORS = ("framepos", "framequat", "framexaxis", "framelinvel", "frameangvel", "framelinacc",
                "frameangacc")  # fmt: skip
SITE_SENSORS = ("accelerometer", "velocimeter", "gyro", "force", "torque", "magnetometer", "touch")
DYNAMICS = ("none", "filter", "filterexact", "integrator")
QUATERNIONS = [int(mujoco.mjtSensor.mjSENS_FRAMEQUAT), int(mujoco.mjtSensor.mjSENS_BALLQUAT)]
STEPS = 25  # of MuJoCo, before the state that is compared


class RandomModel:
    """The text of a random model."""

    def __init__(self, seed: int) -> None:
        self.rng, self.more = np.random.default_rng(seed), np.random.default_rng([seed, 1])
        self.bodies: list[str] = []
        self.scalar_joints: list[str] = []
        self.ball_joints: list[str] = []
        trees = [self._body(None, 0) for _ in range(self.rng.integers(1, 4))]
        actuators, tendons, equalities = self._actuators(), self._tendons(), self._equalities()
        self.text = (
            f"<mujoco>{self._option()}<asset><mesh name='m' vertex='{_words(self._points())}'/></asset>"
            f"<worldbody><geom name='floor' type='plane' size='5 5 .1' {self._surface()}/>"
            f"<site name='origin' pos='0 0 1'/>{''.join(trees)}</worldbody>{tendons}"
            f"<equality>{equalities}</equality><actuator>{actuators}</actuator>"
            f"<sensor>{self._sensors()}</sensor></mujoco>"
        )

    # ------------------------------------------------------------------------------------------- attributes

    def _maybe(self, share: float, text: str) -> str:
        return text if self.rng.uniform() < share else ""

    def _number(self, low: float, high: float) -> float:
        return float(self.rng.uniform(low, high))

    def _points(self) -> Any:
        return (self.rng.normal(size=(8, 3)) * 0.12).ravel()

    def _option(self) -> str:
        rng = self.rng
        flags = [f"{flag}='disable'" for flag in FLAGS if rng.uniform() < 0.06]
        return (
            f"<option timestep='{rng.choice([0.001, 0.002, 0.004])}'"
            f" cone='{rng.choice(['pyramidal', 'elliptic'])}'"
            f" integrator='{rng.choice(['Euler', 'implicitfast', 'implicit', 'RK4'])}'"
            f" impratio='{rng.choice([1, 1, 3])}' gravity='{_words(rng.normal(size=3) - [0, 0, 8])}'"
            + self._maybe(0.25, " density='1.2' viscosity='.02' wind='1 2 0'")
            + self._maybe(0.2, f" noslip_iterations='{rng.integers(1, 6)}'")
            + f"><flag {' '.join(flags)}/></option>"
        )

    def _surface(self) -> str:
        rng = self.rng
        friction = rng.uniform([0.2, 0, 0], [1.2, 0.02, 0.01])
        return (
            f"condim='{rng.choice([1, 3, 3, 4, 6])}' friction='{_words(friction)}'"
            + self._maybe(0.3, f" solref='{self._number(0.01, 0.05)} {self._number(0.5, 1.5)}'")
            + self._maybe(0.3, f" solimp='.8 .95 {self._number(0.001, 0.02)} .4 {rng.choice([1, 2, 3])}'")
            + self._maybe(0.2, f" priority='{rng.integers(0, 3)}'")
            + self._maybe(0.2, f" solmix='{self._number(0, 2)}'")
            + self._maybe(0.2, f" margin='{self._number(0, 0.03)}'")
        )

    def _geom(self) -> str:
        kind = self.rng.choice(GEOMS)
        sizes = self.rng.uniform(0.05, 0.15, 3)
        count = {"sphere": 1, "capsule": 2, "cylinder": 2}.get(kind, 3)
        size = "mesh='m'" if kind == "mesh" else f"size='{_words(sizes[:count])}'"
        pose = f"pos='{_words(self.rng.normal(size=3) * 0.05)}' quat='{_words(self.rng.normal(size=4))}'"
        return f"<geom type='{kind}' {size} {pose} {self._surface()} {self._fluid()}/>"

    def _fluid(self) -> str:
        """Coefficients of a fluid around an ellipsoid, for some geoms."""
        if self.more.uniform() > 0.3:
            return ""
        return f"fluidshape='ellipsoid' fluidcoef='{_words(self.more.uniform(0, 1.5, 5))}'"

    def _joints(self) -> str:
        """One or two joints. None follows a ball joint, where MuJoCo's connect and weld are inexact."""
        first = self._joint(JOINTS)
        return first if "'ball'" in first or self.rng.uniform() < 0.5 else first + self._joint(JOINTS[:3])

    def _joint(self, kinds: tuple[str, ...]) -> str:
        rng, name = self.rng, f"j{len(self.scalar_joints) + len(self.ball_joints)}"
        kind = rng.choice(kinds)
        (self.ball_joints if kind == "ball" else self.scalar_joints).append(name)
        found = (
            f"<joint name='{name}' type='{kind}' pos='{_words(rng.normal(size=3) * 0.1)}'"
            + self._maybe(0.5, f" damping='{self._number(0, 1)}'")
            + self._maybe(0.4, f" armature='{self._number(0, 0.2)}'")
            + self._maybe(0.3, f" frictionloss='{self._number(0, 0.5)}'")
            + self._maybe(0.4, f" stiffness='{self._number(0, 20)}'")
        )
        if kind == "ball":
            return found + self._maybe(0.4, f" limited='true' range='0 {self._number(0.2, 1.5)}'") + "/>"
        return (
            found
            + f" axis='{_words(rng.normal(size=3))}'"
            + self._maybe(0.2, f" ref='{self._number(-0.3, 0.3)}' springref='{self._number(-0.5, 0.5)}'")
            + self._maybe(0.5, f" limited='true' range='{-self._number(0, 0.5)} {self._number(0, 0.5)}'")
            + self._maybe(0.2, " margin='.05'")
            + self._maybe(0.2, f" actuatorfrclimited='true' actuatorfrcrange='-{self._number(0.2, 3)} 1'")
            + "/>"
        )

    def _body(self, parent: str | None, depth: int) -> str:
        rng, name = self.rng, f"b{len(self.bodies)}"
        self.bodies.append(name)
        pos = rng.normal(size=3) * [0.3, 0.3, 0] + [0, 0, 0.2] if parent is None else rng.normal(size=3) * 0.2
        free = parent is None and rng.uniform() < 0.5
        joints = "<freejoint/>" if free else self._joints()
        geoms = "".join(self._geom() for _ in range(rng.integers(1, 3)))
        children = "".join(
            self._body(name, depth + 1) for _ in range(rng.integers(0, 3 if depth == 0 else 2)) if depth < 3
        )
        pose = f"pos='{_words(rng.normal(size=3) * 0.1)}' quat='{_words(rng.normal(size=4))}'"
        site = f"<site name='s{name}' {pose} size='.3'/>"
        return (
            f"<body name='{name}' pos='{_words(pos)}' quat='{_words(rng.normal(size=4))}'"
            + self._maybe(0.1, f" gravcomp='{self._number(0.2, 1)}'")
            + f">{joints}{geoms}{site}{children}</body>"
        )

    # ------------------------------------------------------------------------------------------- elements

    def _actuators(self) -> str:
        rng, found = self.rng, []
        for k, joint in enumerate(self.scalar_joints):
            if rng.uniform() < 0.5:
                continue
            kind = rng.choice(["motor", "position", "velocity", "intvelocity", "damper", "general", "muscle"])
            attributes = {
                "position": f"kp='{self._number(1, 30)}' kv='{self._number(0, 2)}'",
                "velocity": f"kv='{self._number(0, 2)}'",
                "intvelocity": f"kp='{self._number(1, 30)}' actrange='-1 1'",
                "damper": f"kv='{self._number(0, 2)}' ctrlrange='0 1'",
                "general": f"dyntype='{rng.choice(DYNAMICS)}' dynprm='.05' "
                f"gainprm='{self._number(0, 5)}' biastype='affine' biasprm='.1 -.5 -.2'",
                "muscle": f"force='{self._number(1, 20)}' lengthrange='.5 1.5'",
            }.get(kind, "")
            limits = self._maybe(0.3, " forcelimited='true' forcerange='-1 2'")
            limits += self._maybe(0.3, " ctrllimited='true' ctrlrange='-.4 .6'") if kind != "damper" else ""
            gear = f" gear='{self._number(0.3, 3)}'"
            if kind == "general" and self.more.uniform() < 0.4:
                limits += " actearly='true'"
            found.append(f"<{kind} name='a{k}' joint='{joint}' {attributes}{limits}{gear}/>")
        return "".join(found)

    def _tendons(self) -> str:
        rng, found = self.rng, []
        if len(self.scalar_joints) > 1 and rng.uniform() < 0.4:
            joints = "".join(
                f"<joint joint='{j}' coef='{self._number(-2, 2)}'/>" for j in self.scalar_joints[:2]
            )
            found.append(
                f"<fixed name='fixed' stiffness='{self._number(0, 5)}' damping='{self._number(0, 1)}' "
                f"frictionloss='{self._number(0, 0.3)}'>{joints}</fixed>"
            )
        if rng.uniform() < 0.4:
            sites = "".join(f"<site site='{s}'/>" for s in ("origin", *(f"s{b}" for b in self.bodies[:2])))
            found.append(
                f"<spatial name='spatial' limited='true' range='0 {self._number(0.3, 1.5)}' "
                f"stiffness='{self._number(0, 20)}' springlength='.3 .6'>{sites}</spatial>"
            )
        self.tendons = [kind for kind in ("fixed", "spatial") if any(f"<{kind}" in text for text in found)]
        return f"<tendon>{''.join(found)}</tendon>"

    def _equalities(self) -> str:
        rng, found = self.rng, ""
        if rng.uniform() < 0.25:
            found += (
                f"<connect body1='{rng.choice(self.bodies)}' anchor='{_words(rng.normal(size=3) * 0.1)}'/>"
            )
        if len(self.bodies) > 1 and rng.uniform() < 0.2:
            one, two = rng.choice(self.bodies, 2, replace=False)
            found += f"<weld body1='{one}' body2='{two}' torquescale='{self._number(0.5, 2)}'/>"
        if len(self.scalar_joints) > 1 and rng.uniform() < 0.25:
            one, two = rng.choice(self.scalar_joints, 2, replace=False)
            found += f"<joint joint1='{one}' joint2='{two}' polycoef='.1 {self._number(-1, 1)} .2 0 0'/>"
        return found

    def _sensors(self) -> str:
        rng, found = self.rng, ["<clock/>", "<e_kinetic/>"]
        for body in self.bodies[:3]:
            found.append(f"<{rng.choice(SITE_SENSORS)} site='s{body}'/>")
            found.append(
                f"<{rng.choice(BODY_SENSORS)} objtype='{rng.choice(['body', 'xbody'])}' objname='{body}'/>"
            )
            found.append(f"<{rng.choice(['subtreecom', 'subtreelinvel', 'subtreeangmom'])} body='{body}'/>")
            found.append(f"<rangefinder site='s{body}' data='dist point normal'/>")
        found += [
            f"<{rng.choice(['jointpos', 'jointvel', 'jointlimitfrc'])} joint='{j}'/>"
            for j in self.scalar_joints
        ]
        found += [f"<{rng.choice(['ballquat', 'ballangvel'])} joint='{j}'/>" for j in self.ball_joints]
        found += [f"<{rng.choice(['tendonpos', 'tendonvel'])} tendon='{t}'/>" for t in self.tendons]
        return "".join(found)


def _words(values: Any) -> str:
    return " ".join(f"{float(x):.6g}" for x in values)


def compiled_model(seed: int) -> tuple[str, Any]:
    """The text and the model of a seed; of the next one of its series where MuJoCo refuses a text."""
    for again in range(20):
        text = RandomModel(seed + 1_000_000 * again).text
        try:
            return text, mujoco.MjModel.from_xml_string(text)
        except ValueError:
            continue
    raise AssertionError(f"no model of the series {seed} compiles")


def differences(seed: int) -> dict[str, float]:
    """The largest differences from MuJoCo, each relative to the largest number or 1: "acceleration",
    "sensors" and "step"; empty where MuJoCo's own motion diverges.

    Raises UnsupportedError where the reader refuses the model.
    """
    text, model = compiled_model(seed)
    m = read_mjcf("random.xml", text=text)
    model.opt.tolerance, model.opt.iterations, model.opt.ls_tolerance = 1e-15, 300, 1e-10
    model.opt.ls_iterations, model.opt.ccd_tolerance, model.opt.ccd_iterations = 100, 1e-12, 200
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    data.ctrl[:], data.qvel[:] = rng.uniform(-1, 1, model.nu), rng.normal(size=model.nv) * 0.3
    for _ in range(STEPS):
        mujoco.mj_step(model, data)
    if data.warning.number.any() or not np.abs(data.qacc).max(initial=0) < 1e6:
        return {}
    for _ in range(6):
        mujoco.mj_forward(model, data)
        data.qacc_warmstart[:] = data.qacc
    q, v, control, z = data.qpos.copy(), data.qvel.copy(), data.ctrl.copy(), data.act.copy()
    names = [f.name for f in m.forces if isinstance(f, Actuator) and f.activation is not None]
    by_name = dict(zip(m.inputs, control, strict=True)), dict(zip(names, z, strict=True))
    tau = np.asarray(controlled_forces(m, q, v, *by_name), float)
    given = control if m.inputs else np.zeros(model.nv)
    found = {
        "acceleration": _relative(
            zw.constrained_dynamics(m, q, v, tau, time=data.time).acceleration, data.qacc
        ),
        "sensors": _sensor_error(model, data, zw.sensors(m, q, v, given, z, data.time)),
    }
    settings = step_settings(m, m.options.timestep, m.options.integrator)
    end = step(settings, State(q, v, z), given, data.time).state
    mujoco.mj_step(model, data)
    found["step"] = max(_relative(end.v, data.qvel), _relative(end.q, data.qpos), _relative(end.z, data.act))
    return found


def _relative(found: Any, expected: Any) -> float:
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    return float(np.abs(np.asarray(found, float) - expected).max(initial=0.0) / scale)


def _sensor_error(model: Any, data: Any, values: dict[str, np.ndarray]) -> float:
    worst = 0.0
    for i, found in enumerate(values.values()):
        start = model.sensor_adr[i]
        expected = data.sensordata[start : start + model.sensor_dim[i]]
        opposite = model.sensor_type[i] in QUATERNIONS
        sign = -1 if opposite and found @ expected < 0 else 1
        worst = max(worst, _relative(sign * found, expected))
    return worst


def main(count: int, first: int = 0) -> None:
    """Compare models and list those that differ."""
    warnings.simplefilter("ignore")
    compared, refused, differ = 0, 0, []
    for seed in range(first, first + count):
        try:
            found = differences(seed)
        except UnsupportedError as error:
            refused += 1
            print(f"{seed}: refused: {error}", flush=True)
            continue
        except Exception as error:
            differ.append(seed)
            print(f"{seed}: {type(error).__name__}: {str(error)[:200]}", flush=True)
            continue
        compared += bool(found)
        if max(found.values(), default=0) > 1e-6:
            differ.append(seed)
            print(f"{seed}: {found}", flush=True)
    print(f"{compared} compared, {refused} refused, {len(differ)} differ by more than 1e-6: {differ}")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
