"""The sensors of MJCF: for each class of sensors the kinds, by MuJoCo's names of their types."""

from __future__ import annotations

from zwang.mechanism.sensors import (
    ActuatorSensor,
    CameraSensor,
    ContactSensor,
    DistanceSensor,
    FrameSensor,
    GlobalSensor,
    InsideSensor,
    JointSensor,
    RangeSensor,
    Sensor,
    SiteSensor,
    SubtreeSensor,
    TendonSensor,
    TouchSensor,
    UserSensor,
)

SENSOR_KINDS: dict[type[Sensor], dict[str, str]] = {
    SiteSensor: {"ACCELEROMETER": "accelerometer", "VELOCIMETER": "velocimeter", "GYRO": "gyro",
                 "FORCE": "force", "TORQUE": "torque", "MAGNETOMETER": "magnetometer"},
    JointSensor: {"JOINTPOS": "position", "JOINTVEL": "velocity", "JOINTACTFRC": "actuator_force",
                  "JOINTLIMITPOS": "limit_position", "JOINTLIMITVEL": "limit_velocity",
                  "JOINTLIMITFRC": "limit_force", "BALLQUAT": "quaternion",
                  "BALLANGVEL": "angular_velocity"},
    TendonSensor: {"TENDONPOS": "position", "TENDONVEL": "velocity", "TENDONACTFRC": "actuator_force",
                   "TENDONLIMITPOS": "limit_position", "TENDONLIMITVEL": "limit_velocity",
                   "TENDONLIMITFRC": "limit_force"},
    ActuatorSensor: {"ACTUATORPOS": "position", "ACTUATORVEL": "velocity", "ACTUATORFRC": "force"},
    FrameSensor: {"FRAMEPOS": "position", "FRAMEQUAT": "quaternion", "FRAMEXAXIS": "x_axis",
                  "FRAMEYAXIS": "y_axis", "FRAMEZAXIS": "z_axis", "FRAMELINVEL": "linear_velocity",
                  "FRAMEANGVEL": "angular_velocity", "FRAMELINACC": "linear_acceleration",
                  "FRAMEANGACC": "angular_acceleration"},
    SubtreeSensor: {"SUBTREECOM": "mass_centre", "SUBTREELINVEL": "linear_velocity",
                    "SUBTREEANGMOM": "angular_momentum"},
    DistanceSensor: {"GEOMDIST": "distance", "GEOMNORMAL": "normal", "GEOMFROMTO": "segment"},
    GlobalSensor: {"CLOCK": "time", "E_POTENTIAL": "potential_energy", "E_KINETIC": "kinetic_energy"},
    TouchSensor: {"TOUCH": ""},
    RangeSensor: {"RANGEFINDER": ""},
    CameraSensor: {"CAMPROJECTION": ""},
    InsideSensor: {"INSIDESITE": ""},
    ContactSensor: {"CONTACT": ""},
    UserSensor: {"USER": ""},
}  # fmt: skip
"""The kind of each type, empty for a class without kinds."""

CAMERA_MODES = ("fixed", "track", "trackcom", "targetbody", "targetbodycom")
