"""Export of recordings to MCAP files: joint states and transforms, in JSON, as Foxglove displays them.

The schemas are `foxglove.JointStates` and `foxglove.FrameTransforms`
(https://docs.foxglove.dev/docs/sdk/schemas). The file is for other programs: `open_run` does not read it.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from zwang.algebra.rotations import to_quaternion
from zwang.errors import MissingExtraError, ShapeError, SimulationError
from zwang.kinematics.poses import Pose, link_poses, placement_pose
from zwang.lazy_imports import import_module
from zwang.mechanism.mechanism import Mechanism
from zwang.recording.description import description_of
from zwang.recording.mechanism_order import in_mechanism_order, parameters_of

WORLD = "world"
END = 2**64  # ns: times are unsigned integers of 64 bits
STATES, MOVING, STATIC = "joint_states", "tf", "tf_static"
"""The topics: joint states, transforms that change, and transforms that do not, which are written once."""


def _record(title: str, **properties: Any) -> dict[str, Any]:
    """The JSON schema of an object with these properties, all of which are required."""
    return {"title": title, "type": "object", "properties": properties, "required": list(properties)}


def _numbers(title: str, names: str) -> dict[str, Any]:
    return _record(title, **{name: {"type": "number"} for name in names})


TIME = _record("time", sec={"type": "integer", "minimum": 0}, nsec={"type": "integer", "minimum": 0})
JOINT_STATE = _record("foxglove.JointState", name={"type": "string"}) | {
    "properties": {
        "name": {"type": "string"},
        **{name: {"type": "number"} for name in ("position", "velocity", "effort")},
    }
}
TRANSFORM = _record(
    "foxglove.FrameTransform",
    timestamp=TIME,
    parent_frame_id={"type": "string"},
    child_frame_id={"type": "string"},
    translation=_numbers("foxglove.Vector3", "xyz"),
    rotation=_numbers("foxglove.Quaternion", "xyzw"),
)
SCHEMAS = (
    _record("foxglove.JointStates", timestamp=TIME, joints={"type": "array", "items": JOINT_STATE}),
    _record("foxglove.FrameTransforms", transforms={"type": "array", "items": TRANSFORM}),
)
SCHEMA_OF = {STATES: "foxglove.JointStates", MOVING: "foxglove.FrameTransforms"}
SCHEMA_OF[STATIC] = SCHEMA_OF[MOVING]


class Message(NamedTuple):
    """A message: its topic, its time [ns] and its content."""

    topic: str
    time: int
    content: dict[str, Any]


def need_mcap() -> None:
    """Raises MissingExtraError without the library mcap."""
    if find_spec("mcap") is None:
        raise MissingExtraError("export to MCAP needs the library mcap: pip install 'zwang[mcap]'")


def mcap_bytes(run: xr.Dataset) -> bytes:
    """The content of the MCAP file of a recording. Raises MissingExtraError without the library mcap."""
    need_mcap()
    content = io.BytesIO()
    writer = import_module("mcap.writer").Writer(content)
    writer.start(profile="", library="zwang")
    schemas = {
        schema["title"]: writer.register_schema(schema["title"], "jsonschema", json.dumps(schema).encode())
        for schema in SCHEMAS
    }
    channels: dict[str, int] = {}
    for message in messages(run):
        if message.topic not in channels:
            schema = schemas[SCHEMA_OF[message.topic.rpartition("/")[2]]]
            channels[message.topic] = writer.register_channel(message.topic, "json", schema)
        data = json.dumps(message.content, allow_nan=False).encode()
        writer.add_message(channels[message.topic], message.time, data, message.time)
    writer.finish()
    return content.getvalue()


def messages(run: xr.Dataset) -> Iterator[Message]:
    """The messages of a recording, in the order of time; states after a failure are omitted.

    With several worlds, the topics and the names of frames begin with world_0/, world_1/, ...
    Raises ShapeError, and SimulationError for times that the format does not have.
    """
    if not {"world", "time"} <= set(run["q"].dims):
        raise ShapeError(
            "an export to MCAP needs a recording with the dimensions world and time; select by "
            "run.isel(world=[0]), which keeps the dimension"
        )
    worlds = [_WorldMessages(run, world) for world in range(run.sizes["world"])]
    for sample, time in enumerate(_nanoseconds(run["time"].values)):
        for world in worlds:
            yield from world.at(sample, time)


def _nanoseconds(times: np.ndarray) -> list[int]:
    """The times [s] of samples in nanoseconds. Raises SimulationError for one that is not finite, or outside
    the range of the format, that of an unsigned integer of 64 bits.
    """
    found: list[int] = []
    for sample, t in enumerate(map(float, times)):
        finite = math.isfinite(t)
        if not (finite and 0 <= round(t * 1e9) < END):
            remedy = (
                "shift the times, as by run.assign_coords(time=run.time - run.time.min())" if finite
                else "select the samples with finite times"
            )  # fmt: skip
            raise SimulationError(
                f"time[{sample}] is {t!r} s; an MCAP file has times from 0 to {END / 1e9:.3g} s: {remedy}"
            )
        found.append(round(t * 1e9))
    return found


class _WorldMessages:
    """The mechanism and the motion of one world of a recording."""

    def __init__(self, run: xr.Dataset, world: int):
        mechanism = Mechanism.from_json(description_of(run))
        values = {name: float(x[world]) for name, x in parameters_of(run, mechanism).items()}
        run = in_mechanism_order(run, mechanism, "coordinate", "speed")
        mechanism = mechanism.subs(values)
        self.mechanism, self.tree = mechanism, mechanism.tree
        several = run.sizes["world"] > 1
        self.prefix = f"world_{int(run['world'].values[world])}/" if several else ""
        self.q, self.v, self.tau = (run[name].isel(world=world).values for name in ("q", "v", "tau"))
        # (name, index in q, index in v) of every coordinate that is an angle or a displacement
        self.states = [
            (name, joint.q.start + k, joint.v.start + k)
            for joint in mechanism.joints
            if joint.kind not in ("ball", "free")
            for k, name in enumerate(joint.coordinates)
        ]
        self.moving = [(b.name, b.parent) for b in mechanism.bodies if b.joints]
        fixed = [(b.name, b.parent) for b in mechanism.bodies if not b.joints]
        self.static = [*fixed, *((f.name, f.body) for f in mechanism.frames)]

    def at(self, sample: int, time: int) -> Iterator[Message]:
        """The messages of one sample; those of transforms that do not change, of the first one."""
        if not (np.isfinite(self.q[sample]).all() and np.isfinite(self.v[sample]).all()):
            return
        stamp = {"sec": time // 10**9, "nsec": time % 10**9}
        if self.states:
            joints: list[dict[str, Any]] = [
                {"name": name, "position": float(self.q[sample, iq]), "velocity": float(self.v[sample, iv])}
                for name, iq, iv in self.states
            ]
            for joint, (_, _, iv) in zip(joints, self.states, strict=True):
                if np.isfinite(self.tau[sample, iv]):  # that of a failed control is left out
                    joint["effort"] = float(self.tau[sample, iv])
            yield self._message(STATES, time, {"timestamp": stamp, "joints": joints})
        poses = link_poses(self.tree, self.q[sample])
        groups = [(MOVING, self.moving), *([(STATIC, self.static)] if sample == 0 else [])]
        for topic, pairs in groups:
            transforms = [self._transform(poses, child, parent, stamp) for child, parent in pairs]
            if transforms:
                yield self._message(topic, time, {"transforms": transforms})

    def _message(self, topic: str, time: int, content: dict[str, Any]) -> Message:
        return Message(f"/{self.prefix}{topic}", time, content)

    def _transform(self, poses: list[Pose], child: str, parent: str, stamp: dict[str, int]) -> dict[str, Any]:
        """The pose of a body or frame in its parent: R_PC = R_WP^T R_WC, p_PC = R_WP^T (p_WC - p_WP)."""
        a, b = (placement_pose(poses, self.tree.placement(name)) for name in (parent, child))
        x, y, z = (float(value) for value in a.R.T @ (b.p - a.p))
        qw, qx, qy, qz = to_quaternion(a.R.T @ b.R).tolist()
        return {
            "timestamp": stamp,
            "parent_frame_id": self._frame(parent),
            "child_frame_id": self._frame(child),
            "translation": {"x": x, "y": y, "z": z},
            "rotation": {"x": qx, "y": qy, "z": qz, "w": qw},
        }

    def _frame(self, name: str) -> str:
        return name if name == WORLD else self.prefix + name
