"""Values of the sensors of a mechanism in one state, on any scalar, equal to MuJoCo's `sensordata`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from zwang.collision import Pair
from zwang.collision.contact_point import unit
from zwang.collision.distances import ShapeDistance, nearer, placed_shapes, shape_distances
from zwang.collision.rays import is_inside, meets, nearest_hit, ray_distance, ray_hit
from zwang.constraint.context import StepForm, row_context
from zwang.constraint.coulomb_friction import coulomb_frictions
from zwang.constraint.rows import Rows
from zwang.dynamics import sensed_motion as motion
from zwang.dynamics.actuators import ActuatorOutput, Inputs, actuator_outputs
from zwang.dynamics.energy import kinetic_energy_of, potential_energy_of
from zwang.dynamics.forward_dynamics import free_accelerations_of
from zwang.dynamics.generalised_forces import (
    actuator_forces_of,
    clip_to_actuator_ranges,
    point_spring_pull,
    spring_energy,
    tendon_tension,
)
from zwang.dynamics.tendon_armature import inertial_tension
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.poses import Pose
from zwang.kinematics.tendon_length import spatial_tendons_at, tendon_length
from zwang.kinematics.velocities import SpatialVector
from zwang.mechanism import sensors as described
from zwang.mechanism.constraints import Connect, Weld
from zwang.mechanism.force_elements import Actuator, PointSpring, Wrench
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tendon_elements import TendonCoupling
from zwang.mechanism.tree import Placement
from zwang.scalar import clip, less, maximum, minimum, sqrt, where
from zwang.simulation.applied_forces import applied_forces, inputs_by_name
from zwang.simulation.constrained import ConstrainedSolution, gauss_problem, has_nonideal_constraints
from zwang.simulation.constraint_stage import constraint_model_of, solved
from zwang.simulation.impact_stage import has_hard_contacts
from zwang.simulation.quantities.constraint_forces import (
    CONSTRAINT,
    constraint_point_forces,
    point_force_labels,
    weld_torques,
)
from zwang.simulation.quantities.contact_forces import ContactState, contact_labels, contact_states
from zwang.simulation.quantities.contact_sensor import contact_value
from zwang.solver.solution import Solution


@dataclass(frozen=True, eq=False)
class SensedState:
    """One state of a mechanism with the quantities that its sensors need, each computed at its first use.

    time [s], q (nq,), v (nv,), activation (nz,) and control (nu,): as for a step. step: how steps close hard
    constraints, by default of the size of the options. known_acceleration: the solution of Gauss's problem
    (nv,) where it is known; otherwise it is computed, as it is for multipliers of hard constraints. start: of
    the constraint solver; for a state of tangents its known solution (`zwang.solver.linearised`).
    """

    mechanism: Mechanism
    time: Any
    q: Any
    v: Any
    activation: Any
    control: Any
    step: StepForm | None = None
    known_acceleration: Any = None
    start: Any = None

    @cached_property
    def kinematics(self) -> Kinematics:
        """Poses and velocities of the links."""
        return Kinematics(self.mechanism.tree, self.q, self.v)

    @cached_property
    def actuator_outputs(self) -> dict[str, ActuatorOutput]:
        """Length, velocity and force of every actuator and motor."""
        return actuator_outputs(self.mechanism, self.kinematics, self._inputs)

    @cached_property
    def _inputs(self) -> Inputs:
        """What drives the actuators."""
        return inputs_by_name(self.mechanism, self.activation, self.control, self.time, self._step_size)

    @property
    def _step_size(self) -> Any:
        return self._form.actuator_step

    @property
    def _form(self) -> StepForm:
        return StepForm(self.mechanism.options.timestep) if self.step is None else self.step

    @cached_property
    def actuator_force(self) -> np.ndarray:
        """The generalised force (nv,) of all actuators [N m, N]."""
        if not self.mechanism.inputs:
            return clip_to_actuator_ranges(self.mechanism, np.asarray(self.control))
        return actuator_forces_of(self.mechanism, self.kinematics, self._inputs)

    @cached_property
    def _constraint_model(self) -> Any:
        return constraint_model_of(self.mechanism, self._form.for_forces)

    @cached_property
    def solution(self) -> ConstrainedSolution | None:
        """The solution of Gauss's problem; None without constraints."""
        if self._constraint_model is None:
            return None
        return solved(self._constraint_model, self.kinematics, self._applied_force, self.time, self.start)

    @cached_property
    def _applied_force(self) -> np.ndarray:
        driven = self.activation, self.control, self.time, self._step_size
        return applied_forces(self.mechanism, self.kinematics, *driven)

    @cached_property
    def acceleration(self) -> np.ndarray:
        """The generalised acceleration (nv,), constraints included."""
        if self._constraint_model is None:
            return free_accelerations_of(self.kinematics, self._applied_force)
        return np.array(self._rows_and_solution[1].acceleration)

    @cached_property
    def constraint_force(self) -> np.ndarray:
        """The generalised force (nv,) of all constraints, M (a - a_free) [N m, N]."""
        if self._constraint_model is None:
            return np.zeros(self.mechanism.nv, int)
        problem = gauss_problem(self.kinematics, self._applied_force)
        return problem.force_of(self.acceleration - problem.a_free)

    @cached_property
    def _rows_and_solution(self) -> tuple[Rows | None, Solution]:
        """The constraint rows and the solution of Gauss's problem.

        Forces of soft constraints follow from the acceleration alone; if it is known, they need no rows.
        """
        if self.known_acceleration is not None and not self._has_multipliers:
            return None, Solution(np.asarray(self.known_acceleration), np.zeros(0), 0, True)
        assert self.solution is not None
        return self.solution.rows, self.solution.solution

    @property
    def _has_multipliers(self) -> bool:
        """Whether some forces do not follow from the acceleration."""
        m = self.mechanism
        hard = self._constraint_model.hard or has_hard_contacts(m)
        return hard or bool(coulomb_frictions(m)) or has_nonideal_constraints(m)

    @cached_property
    def link_accelerations(self) -> list[SpatialVector]:
        """Accelerations of the links, without gravity."""
        return motion.link_accelerations(self.kinematics, self.acceleration)

    @cached_property
    def _row_context(self) -> Any:
        model = self._constraint_model
        return row_context(
            self.mechanism, self.kinematics, inverse_weights=model.weights, step=model.step, time=self.time
        )

    @cached_property
    def contacts(self) -> list[tuple[Pair, ContactState]]:
        """The contacts of all candidate pairs."""
        if self._constraint_model is None:
            return []
        states = contact_states(self._row_context, *self._rows_and_solution)
        pairs = [label.pair for label in contact_labels(self.mechanism)]
        return list(zip(pairs, states, strict=True))

    @cached_property
    def external_wrenches(self) -> dict[str, np.ndarray]:
        """Wrench (6,) of contacts, of constraints between points, of spatial tendons, applied wrenches and
        springs between points on every body, but not on the world: force, and moment about the world's
        origin.

        As in MuJoCo, forces of gravity compensation and of actuators on frames are not included.
        """
        found = {body.name: np.zeros(6, int) for body in self.mechanism.bodies}
        self._add_tendon_loads(found)
        self._add_applied_loads(found)
        for pair, contact in self.contacts:
            force, torque = contact.frame.T @ contact.force[:3], contact.frame.T @ contact.force[3:]
            _add_load(found, pair.b.body, contact.position, force, torque)
            _add_load(found, pair.a.body, contact.position, -force, -torque)
        if self._constraint_model is None:
            return found
        labels = [label for label in point_force_labels(self.mechanism) if label.kind == CONSTRAINT]
        _, solution = self._rows_and_solution
        torques = weld_torques(self._row_context, solution)
        forces = constraint_point_forces(self._row_context, solution)
        for label, load in zip(labels, forces, strict=True):
            torque = torques.get(label.name, np.zeros(3, int))
            other = self._other_point(label.name, load.position)
            _add_load(found, label.body, load.position, load.force, torque)
            _add_load(found, label.other, other, -load.force, -torque)
        return found

    def _add_tendon_loads(self, loads: dict[str, np.ndarray]) -> None:
        """Add the loads of tendons along a path: of springs, dampers, actuators, armature and constraints."""
        m = self.mechanism
        for tendon in m.tendons:
            if not tendon.path:
                continue
            length, moment = tendon_length(m, tendon, self.kinematics)
            tension = tendon_tension(tendon, length, moment @ self.v)
            for force in m.forces:
                if isinstance(force, Actuator) and force.tendon == tendon.name:
                    tension = tension - force.gear[0] * self.actuator_outputs[force.name].force
            tension = tension + self._constraint_tension(tendon.name)
            for inertia in m.tree.tendon_inertias:
                if inertia.name == tendon.name:
                    tension = tension + inertial_tension(self.kinematics, inertia, self.acceleration)
            for ends, p, pull in spatial_tendons_at(m, self.kinematics).strand_forces(tendon.name):
                a, b = (body_of_frame(m, frame) for frame in ends)
                if a != b:
                    _add_load(loads, a, p, tension * pull, np.zeros(3, int))
                    _add_load(loads, b, p, -tension * pull, np.zeros(3, int))

    def _add_applied_loads(self, loads: dict[str, np.ndarray]) -> None:
        """Add the loads of wrenches and of springs between points."""
        for force in self.mechanism.forces:
            if isinstance(force, Wrench):
                R, p = self._point(force.body, force.point)
                factor = 1 if force.input is None else self._inputs.control.get(force.input, 0)
                parts = [factor * np.array(x) for x in (force.force, force.torque)]
                if force.axes == "body":
                    parts = [R @ x for x in parts]
                _add_load(loads, force.body, p, *parts)
            elif isinstance(force, PointSpring):
                self._add_spring_load(loads, force)

    def _add_spring_load(self, loads: dict[str, np.ndarray], spring: PointSpring) -> None:
        """Add the load of a spring between two points, which pulls each towards the other."""
        (_, a), (_, b) = (self._point(*end) for end in (spring.a, spring.b))

        def speed() -> np.ndarray:
            u, w = (self._point_velocity(*end) for end in (spring.a, spring.b))
            return w - u

        pull = point_spring_pull(spring, b - a, speed)
        for body, p, force in ((spring.a[0], a, pull), (spring.b[0], b, -pull)):
            _add_load(loads, body, p, force, np.zeros(3, int))

    def _placement(self, body: str, point: Any) -> Placement:
        """The frame at a point of a body, with the axes of the body."""
        base = self.mechanism.tree.placement(body)
        return Placement(base.link, base.R, base.p + base.R @ np.array(point))

    def _point(self, body: str, point: Any) -> Pose:
        """The axes of a body, and the world position of its point."""
        return self.kinematics.placement_pose(self._placement(body, point))

    def _point_velocity(self, body: str, point: Any) -> np.ndarray:
        """The velocity (3,) of a point of a body."""
        return self.kinematics.placement_velocity(self._placement(body, point))[:3]

    def _constraint_tension(self, tendon: str) -> Any:
        """The tension [N] of a tendon by its limits, friction and couplings, by the forces of their rows."""
        if self.solution is None:
            return 0
        names = {f"lower limit of {tendon}": -1, f"upper limit of {tendon}": 1, f"friction of {tendon}": -1}
        shares: dict[str, Any] = dict(names)
        for c in self.mechanism.constraints:
            if isinstance(c, TendonCoupling) and tendon in (c.tendon, c.to):
                shares[c.name] = -1 if tendon == c.tendon else self._coupling_slope(c)
        rows, force = self.solution.rows, self.solution.solution.force
        return sum(
            (shares[row] * f for row, f in zip(rows.names, force, strict=True) if row in shares), start=0
        )

    def _coupling_slope(self, c: TendonCoupling) -> Any:
        """The derivative of the polynomial of a coupling by the length of its second tendon."""
        m = self.mechanism
        other = next(t for t in m.tendons if t.name == c.to)
        y = tendon_length(m, other, self.kinematics)[0] - self._constraint_model.weights.lengths[other.name]
        terms = enumerate(c.coefficients[1:], start=1)
        return sum((k * x * y ** (k - 1) for k, x in terms), start=0)

    def _other_point(self, name: str, p: Any) -> Any:
        """Where the reaction of a constraint acts: on the second point of a soft connect or weld, which
        differs from the first by the violation.
        """
        for c in self.mechanism.constraints:
            if c.name == name and isinstance(c, Connect | Weld):
                return self._point(*(c.b if isinstance(c, Connect) else (c.b, c.anchor))).p
        return p

    @cached_property
    def interaction_wrenches(self) -> dict[str, np.ndarray]:
        """Wrench (6,) that the parent exerts on each body, and on "world" the ground: force, and moment about
        the world's origin.

        It is the sum over the subtree of the inertial wrenches less weight and external wrenches.
        """
        inertial = motion.inertial_wrenches(self.kinematics, self.link_accelerations)
        external, zero = self.external_wrenches, np.zeros(6, int)
        found: dict[str, np.ndarray] = {"world": inertial.get("world", zero)}
        for body in self.mechanism.bodies:
            found[body.name] = inertial.get(body.name, zero) - external[body.name]
        for body in reversed(self.mechanism.bodies):
            found[body.parent] = found[body.parent] + found[body.name]
        return found


def _add_load(loads: dict[str, np.ndarray], body: str, p: Any, force: Any, torque: Any) -> None:
    """Add a force and a torque at the point p to the wrench of a body; the world has none."""
    if body in loads:
        loads[body] = loads[body] + np.concatenate([force, torque + motion.cross(p, force)])


# -------------------------------------------------------------------------------------------------- values


def sensor_values(state: SensedState, names: Sequence[str] | None = None) -> np.ndarray:
    """The values of all sensors one after the other (n,), or of those of these names, in their order.

    They are zero if the options disable sensors.
    """
    m = state.mechanism
    chosen = m.sensors if names is None else [m.sensor(name) for name in names]
    disabled = "sensor" in m.options.disabled
    parts = [
        np.zeros(s.quantity.size, int) if disabled else np.array(_limited(s, sensor_value(state, s)))
        for s in chosen
    ]
    return np.concatenate([np.zeros(0, int), *parts])


def sensor_slices(sensors: Sequence[described.Sensor]) -> dict[str, slice]:
    """Where the values of each sensor are in `sensor_values`."""
    found, at = {}, 0
    for sensor in sensors:
        found[sensor.name] = slice(at, at + sensor.quantity.size)
        at += sensor.quantity.size
    return found


def _limited(sensor: described.Sensor, values: Any) -> list[Any]:
    """The values within the cutoff of the sensor."""
    cutoff, kind = sensor.cutoff, sensor.quantity.cutoff
    if kind == "none" or (isinstance(cutoff, int | float) and cutoff == 0):
        return list(values)
    return [minimum(x, cutoff) if kind == "above" else clip(x, -cutoff, cutoff) for x in values]


def sensor_value(state: SensedState, sensor: described.Sensor) -> Any:
    """The elements of one sensor, before its cutoff."""
    match sensor:
        case described.SiteSensor():
            return _site(state, sensor)
        case described.FrameSensor():
            return _frame(state, sensor)
        case described.JointSensor():
            return _joint(state, sensor)
        case described.TendonSensor():
            return _tendon(state, sensor)
        case described.ActuatorSensor():
            output = state.actuator_outputs[sensor.actuator]
            if sensor.kind == "velocity" and "actuation" in state.mechanism.options.disabled:
                return [0]  # as in MuJoCo, which finds no velocities of actuators then
            return [getattr(output, "length" if sensor.kind == "position" else sensor.kind)]
        case described.SubtreeSensor():
            return motion.subtree_value(state.mechanism, state.kinematics, sensor)
        case described.TouchSensor():
            return [_touch(state, sensor)]
        case described.InsideSensor():
            pose = state.kinematics.frame_pose(sensor.zone_frame)
            inside = is_inside(sensor.zone, pose, state.kinematics.frame_pose(sensor.frame).p)
            return [where(inside, 1.0, 0.0)]
        case described.RangeSensor():
            return _range(state, sensor)
        case described.CameraSensor():
            point = state.kinematics.frame_pose(sensor.frame).p
            return motion.camera_value(state.kinematics, state.mechanism.camera(sensor.camera), point)
        case described.DistanceSensor():
            return _distance(state, sensor)
        case described.ContactSensor():
            return contact_value(state.mechanism, state.kinematics, state.contacts, sensor)
        case described.GlobalSensor():
            return [_global(state, sensor)]
    return [0] * sensor.quantity.size


def _site(state: SensedState, sensor: described.SiteSensor) -> np.ndarray:
    """Values in the axes of the sensor's frame."""
    kinematics = state.kinematics
    placement = kinematics.tree.placement(sensor.frame)
    R, p = kinematics.placement_pose(placement)
    match sensor.kind:
        case "magnetometer":
            return R.T @ np.array(state.mechanism.options.magnetic_field)
        case "velocimeter" | "gyro":
            return motion.site_velocity_value(kinematics, sensor)
        case "accelerometer":
            return R.T @ motion.proper_acceleration(kinematics, state.link_accelerations, placement)[:3]
    wrench = state.interaction_wrenches[body_of_frame(state.mechanism, sensor.frame)]
    wrench = motion.moved_wrench(wrench, p)
    return R.T @ (wrench[:3] if sensor.kind == "force" else wrench[3:])


def _frame(state: SensedState, sensor: described.FrameSensor) -> np.ndarray:
    kinematics = state.kinematics
    if sensor.kind.endswith("velocity"):
        return motion.frame_velocity_value(kinematics, sensor)
    if not sensor.kind.endswith("acceleration"):
        return motion.frame_pose_value(kinematics, sensor)
    placement = kinematics.tree.placement(sensor.frame)
    found = motion.proper_acceleration(kinematics, state.link_accelerations, placement)
    return found[:3] if sensor.kind == "linear_acceleration" else found[3:]


def _joint(state: SensedState, sensor: described.JointSensor) -> list[Any]:
    joint = state.mechanism.joint(sensor.joint)
    match sensor.kind:
        case "position" | "quaternion":
            return list(state.q[joint.q])
        case "velocity" | "angular_velocity":
            return list(state.v[joint.v])
        case "actuator_force":
            return list(state.actuator_force[joint.v])
    return [_limit(state, sensor.joint, sensor.kind)]


def _tendon(state: SensedState, sensor: described.TendonSensor) -> list[Any]:
    m = state.mechanism
    if sensor.kind in ("position", "velocity"):
        tendon = next(t for t in m.tendons if t.name == sensor.tendon)
        length, moment = tendon_length(m, tendon, state.kinematics)
        return [length if sensor.kind == "position" else moment @ state.v]
    if sensor.kind == "actuator_force":
        own = [f.name for f in m.forces if isinstance(f, Actuator) and f.tendon == sensor.tendon]
        return [sum((state.actuator_outputs[name].force for name in own), start=0)]
    return [_limit(state, sensor.tendon, sensor.kind)]


def _limit(state: SensedState, name: str, kind: str) -> Any:
    """Distance less margin, velocity or force of the active limit of a joint or tendon; 0 if none is active.

    If both limits are active, it is that of the lower one.
    """
    found: Any = 0
    if state.solution is None:
        return found
    rows = state.solution.rows
    limits = (f"upper limit of {name}", f"lower limit of {name}", f"limit of {name}")
    for end in limits:
        for k in (k for k, row in enumerate(rows.names) if row == end and rows.kinds[k] == "limit"):
            value = {
                "limit_position": rows.position[k] - rows.margin[k],
                "limit_velocity": rows.velocity[k],
                "limit_force": state.solution.solution.force[k],
            }[kind]
            found = where(rows.active[k], value, found)
    return found


def body_of_frame(mechanism: Mechanism, frame: str) -> str:
    """The body to which a frame is fixed; that of a body's own frame is the body."""
    return next((f.body for f in mechanism.frames if f.name == frame), frame)


def _touch(state: SensedState, sensor: described.TouchSensor) -> Any:
    """Sum of the normal forces of the contacts of the frame's body that meet the zone."""
    body = body_of_frame(state.mechanism, sensor.frame)
    pose = state.kinematics.frame_pose(sensor.frame)
    total: Any = 0
    for pair, contact in state.contacts:
        if body not in (pair.a.body, pair.b.body):
            continue
        outwards = contact.frame[0] if body == pair.a.body and body != pair.b.body else -contact.frame[0]
        hit = meets(ray_distance(sensor.zone, pose, contact.position, outwards))
        total = total + where(hit, maximum(contact.force[0], 0), 0.0)
    return total


def _range(state: SensedState, sensor: described.RangeSensor) -> list[Any]:
    """Distance along the z axis of the frame to the nearest visible shape of another body."""
    own = body_of_frame(state.mechanism, sensor.frame)
    R, p = state.kinematics.frame_pose(sensor.frame)
    hits = []
    for shape in placed_shapes(state.mechanism):
        if shape.body == own or (shape.shape.color is not None and shape.shape.color[3] == 0):
            continue
        hits.append(ray_hit(shape.shape, state.kinematics.placement_pose(shape.placement), p, R[:, 2]))
    best, normal = nearest_hit(hits)
    hit = meets(best)
    data = {
        "distance": [where(hit, best, -1.0)],
        "direction": [where(hit, x, 0.0) for x in R[:, 2]],
        "origin": list(p),
        "point": [where(hit, x, 0.0) for x in p + R[:, 2] * where(hit, best, 0.0)],
        "normal": [where(hit, x, 0.0) for x in unit(normal)[0]],
        "depth": [where(hit, best, -1.0)],
    }
    return [x for name in sensor.data for x in data[name]]


def _distance(state: SensedState, sensor: described.DistanceSensor) -> list[Any]:
    """Distance, normal or segment of the nearest shapes of two parts."""
    shapes = placed_shapes(state.mechanism)
    one, two = (
        [s for s in shapes if (s.shape.name if kind == "shape" else s.body) == name]
        for kind, name in (sensor.a, sensor.b)
    )
    zero = np.zeros(3, int)
    best = ShapeDistance(sensor.cutoff, zero, zero, zero)
    pairs = [(a, b) for a in one for b in two]
    for near in shape_distances(pairs, state.kinematics.poses, [sensor.cutoff] * len(pairs)):
        best = nearer(best, near)
    if sensor.kind == "distance":
        return [best.distance]
    if sensor.kind == "segment":
        return [*best.first, *best.second]
    d = best.second - best.first
    square = d @ d
    apart = less(0, square)
    return [where(apart, x / sqrt(where(apart, square, 1.0)), 0.0) for x in d]


def _global(state: SensedState, sensor: described.GlobalSensor) -> Any:
    if sensor.kind == "time":
        return state.time
    if sensor.kind == "kinetic_energy":
        return kinetic_energy_of(state.kinematics)
    return potential_energy_of(state.kinematics) + spring_energy(state.mechanism, state.q)
