"""Sensors by closed forms, in recordings, and keyframes as starts."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.collision.rays import NOTHING, is_inside, ray_distance
from zwang.errors import DescriptionError, SimulationError, UnknownNameError
from zwang.kinematics.poses import Pose

LENGTH, MASS, G = 0.7, 1.3, 9.81


def pendulum(**more) -> zw.Mechanism:
    """A point mass on a rod about y, with an IMU at the mass whose z axis points to the pivot."""
    bob = zw.Body("bob", joint=zw.Revolute("angle", axis=(0, 1, 0)), mass=MASS, com=(0, 0, -LENGTH))
    return zw.Mechanism(
        bodies=(bob,),
        frames=(zw.Frame("imu", "bob", position=(0, 0, -LENGTH)),),
        sensors=(
            zw.SiteSensor("accelerometer", "accelerometer", "imu"),
            zw.SiteSensor("gyro", "gyro", "imu"),
            zw.SiteSensor("force", "force", "imu"),
            zw.FrameSensor("height", "position", "imu"),
            zw.GlobalSensor("clock", "time"),
            zw.GlobalSensor("kinetic", "kinetic_energy"),
        ),
        **more,
    )


def test_the_sensors_of_a_pendulum_have_their_closed_forms():
    """In the axes of the rod the mass has the acceleration (-L q'', ., L v^2); q'' = -(g / L) sin q. An
    accelerometer measures it less gravity, so that the tangential part is zero, and the rod pulls by m times
    that.
    """
    q, v = 0.8, 1.7
    found = zw.sensors(pendulum(), [q], [v], time=3.0)
    along = LENGTH * v * v + G * np.cos(q)
    assert found["accelerometer"] == pytest.approx([0, 0, along], abs=1e-12)
    assert found["force"] == pytest.approx([0, 0, MASS * along], abs=1e-12)
    assert found["gyro"] == pytest.approx([0, v, 0])
    assert found["height"] == pytest.approx([-LENGTH * np.sin(q), 0, -LENGTH * np.cos(q)])
    assert found["clock"] == 3.0
    assert found["kinetic"] == pytest.approx(MASS * (LENGTH * v) ** 2 / 2)


def test_a_tendon_pulls_a_mast_that_is_fixed_to_its_cart():
    """Newton's law of the mast at rest: the force of the cart, its weight and the tension of the stay."""
    cart = zw.Body("cart", joint=zw.Prismatic("x", axis=(1, 0, 0)), mass=2)
    mast = zw.Body("mast", parent="cart", position=(0, 0, 0.5), mass=MASS, com=(0, 0, 0.4))
    m = zw.Mechanism(
        bodies=(cart, mast),
        frames=(
            zw.Frame("foot", "cart", position=(0.6, 0, 0)),
            zw.Frame("top", "mast", position=(0, 0, 0.3)),
        ),
        tendons=(zw.Tendon("stay", path=("foot", "top"), stiffness=50, spring_length=(0.4, 0.4)),),
        sensors=(zw.SiteSensor("force", "force", "mast"), zw.SiteSensor("torque", "torque", "mast")),
    )
    tension = 50 * (1.0 - 0.4)
    pull = tension * np.array([0.6, 0, -0.8])
    found = zw.sensors(m, [0.3], [0.0])
    assert found["force"] == pytest.approx([0, 0, MASS * G] - pull, abs=1e-12)
    assert found["torque"] == pytest.approx(-np.cross([0, 0, 0.3], pull), abs=1e-12)
    first, second = zw.external_wrenches(m, [0.3], [0.0])[1:]
    assert first == pytest.approx(-second, abs=1e-12)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_recording_has_the_sensors_of_its_states(compiled, tmp_path):
    m = pendulum()
    run = zw.simulate(
        m, [0.8], duration=0.1, step=0.01, record={"sensors": True, "every": 2}, compiled=compiled,
        progress=False,
    )  # fmt: skip
    assert run.sensor.dims == ("world", "time", "sensor_name")
    for k, time in enumerate(run.time.values):
        expected = zw.sensors(m, run.q.values[0, k], run.v.values[0, k], time=float(time))
        for name, values in expected.items():
            found = np.atleast_1d(run.sensor.sel(world=0, sensor_name=name).values[k])
            assert found == pytest.approx(values, abs=1e-12), name
    assert list(run.sensor_component.values[:4]) == ["x", "y", "z", "x"]
    assert run.sensor_unit.values[0] == "m/s^2" and run.sensor.attrs["units"] == "see sensor_unit"
    zw.save(run, tmp_path / "run.nc")
    assert zw.open_run(tmp_path / "run.nc").sensor.equals(run.sensor)


def test_sensors_are_recorded_by_name_and_computed_afterwards():
    m = pendulum()
    run = zw.simulate(m, [0.3], duration=0.05, record={"sensors": ["gyro"]}, progress=False)
    assert list(run.sensor_name.values) == ["gyro"] * 3
    later = zw.derived_quantities(run, "sensors")
    assert later.sensor.sel(sensor_name="gyro").values == pytest.approx(run.sensor.values, abs=1e-14)
    assert later.sizes["sensor_name"] == 14
    with pytest.raises(UnknownNameError, match="sensor 'gyros'"):
        zw.simulate(m, duration=0.1, record={"sensors": ["gyros"]}, progress=False)
    with pytest.raises(SimulationError, match="give True, or a list of names"):
        zw.simulate(m, duration=0.1, record={"sensors": 3}, progress=False)


def test_a_symbol_is_a_parameter_of_the_compiled_sensors():
    length = sp.Symbol("L", positive=True)
    m = pendulum().replace(frames=(zw.Frame("imu", "bob", position=(0, 0, -length)),))
    found = zw.compile(m).sensors([[0.2]] * 2, [[0.0]] * 2, params={"L": [0.5, 2.0]})["height"]
    assert found[:, 2] == pytest.approx(-np.array([0.5, 2.0]) * np.cos(0.2))


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_the_force_on_a_resting_ball_is_its_weight(cone):
    """Touch and contact sensors, and the distance to the floor."""
    ball = zw.Body("ball", joint=zw.Free("root"), geometry=(zw.Sphere(0.1, name="ball"),), density=500)
    m = zw.Mechanism(
        bodies=(ball,),
        geometry=(zw.Plane(name="floor"),),
        options=zw.Options(cone=cone),
        home=(0, 0, 0.1, 1, 0, 0, 0),
        sensors=(
            zw.TouchSensor("touch", "ball", zw.Sphere(0.11)),
            zw.TouchSensor("elsewhere", "ball", zw.Sphere(0.01), cutoff=1),
            zw.ContactSensor("net", ("shape", "floor"), ("body", "ball"), data=("force",), reduce="netforce"),
            zw.ContactSensor("reverse", ("body", "ball"), data=("force", "normal")),
            zw.DistanceSensor("gap", "distance", ("shape", "floor"), ("shape", "ball"), cutoff=1),
        ),
    )
    run = zw.simulate(m, duration=1.5, step=0.002, record={"sensors": True, "every": 750}, progress=False)
    found = {name: run.sensor.sel(world=0, sensor_name=name).values[-1] for name in ("touch", "elsewhere")}
    weight = G * ball.mass
    assert found["touch"] == pytest.approx(weight, rel=1e-3)
    assert found["elsewhere"] == 0.0  # the ray from the contact out of the ball does not meet its centre
    assert run.sensor.sel(world=0, sensor_name="net").values[-1] == pytest.approx([0, 0, weight], rel=1e-3)
    reverse = run.sensor.sel(world=0, sensor_name="reverse").values[-1]
    assert reverse[[0, 3, 4, 5]] == pytest.approx([weight, 0, 0, -1], rel=1e-3)
    assert run.sensor.sel(world=0, sensor_name="gap").values[-1] == pytest.approx(
        run.q.values[0, -1, 2] - 0.1
    )


def test_the_name_of_a_keyframe_is_a_start():
    key = zw.Keyframe("raised", q=(1.2,), v=(0.4,), control=(0.5,))
    m = pendulum(keyframes=(key,), forces=(zw.Motor("motor", "angle"),))
    run = zw.simulate(m, "raised", duration=0.02, progress=False)
    expected = zw.simulate(m, [1.2], [0.4], duration=0.02, control=[0.5], progress=False)
    assert run.q.equals(expected.q) and run.control.equals(expected.control)
    still = zw.simulate(m, "raised", [0.0], duration=0.02, control=[0.0], worlds=2, progress=False)
    assert still.v.values[:, 0] == pytest.approx(0) and not still.control.values.any()
    with pytest.raises(UnknownNameError, match=r"no keyframe 'raise'\. Did you mean 'raised'"):
        zw.simulate(m, "raise", duration=0.02, progress=False)


def test_dictionaries_complete_the_state_of_a_keyframe():
    """Also on the worlds of `zw.Worlds`; elements that a dictionary leaves out are those of the keyframe."""
    arm = zw.Body("arm", zw.Revolute("elbow", axis=(0, 1, 0)), mass=1.0, com=(0, 0, -0.5), parent="bob")
    forces = (zw.Motor("first", "angle"), zw.Motor("second", "elbow"))
    key = zw.Keyframe("home", q=(0.5, 0.6), v=(1.0, 2.0), control=(0.3, 0.4))
    m = pendulum()
    m = m.replace(bodies=(*m.bodies, arm), forces=forces, keyframes=(key,))
    run = zw.simulate(
        m, "home", {"angle": [3.0, 4.0]}, control={"second": 0.6}, duration=0.01, progress=False
    )
    assert run.v.values[:, 0].tolist() == [[3.0, 2.0], [4.0, 2.0]]
    assert run.control.values[:, 0].tolist() == [[0.3, 0.6]] * 2
    worlds = zw.Worlds(m, 2)
    worlds.reset(q="home", v={"elbow": 5.0})
    assert worlds.v.tolist() == [[1.0, 5.0]] * 2 and worlds.control.tolist() == [[0.3, 0.4]] * 2
    linear = zw.linearize(m, "home", {"elbow": 5.0}, {"first": 7.0})
    assert np.array_equal(linear.v, [1.0, 5.0]) and np.array_equal(linear.control, [7.0, 0.4])


def test_the_activations_of_a_keyframe_are_a_start():
    motor = zw.Actuator("motor", joint="angle", activation=("filter", (0.1,)))
    m = pendulum(keyframes=(zw.Keyframe("tense", activation=(0.7,)),), forces=(motor,))
    run = zw.simulate(m, "tense", duration=0.02, progress=False)
    assert run.activation.values[0, 0] == 0.7 and run.activation.values[0, 1] < 0.7


SHAPES = {
    "sphere": (zw.Sphere(0.3), 0.3),
    "ellipsoid": (zw.Ellipsoid(0.2, 0.4, 0.5), 0.2),
    "capsule": (zw.Capsule(0.3, 1.0), 0.3),
    "cylinder": (zw.Cylinder(0.3, 1.0), 0.3),
    "box": (zw.Box(0.6, 2.0, 2.0), 0.3),
}


@pytest.mark.parametrize("name", SHAPES)
def test_rays_meet_shapes_where_points_become_inside(name):
    """Along random rays the first point inside by `is_inside` is at the distance of the ray; a ray along x
    through the centre has a closed form.
    """
    shape, half = SHAPES[name]
    pose = Pose(np.eye(3), np.array([2.0, 0, 0]))
    assert ray_distance(shape, pose, np.zeros(3), np.array([1.0, 0, 0])) == pytest.approx(2 - half)
    assert ray_distance(shape, pose, pose.p, np.array([1.0, 0, 0])) == pytest.approx(half)
    assert ray_distance(shape, pose, np.zeros(3), np.array([-1.0, 0, 0])) == NOTHING
    rng, hits = np.random.default_rng(0), 0
    for _ in range(60):
        origin = rng.normal(size=3)
        d = pose.p + 0.3 * rng.normal(size=3) - origin
        d /= np.linalg.norm(d)
        if is_inside(shape, pose, origin):
            continue
        t = ray_distance(shape, pose, origin, d)
        samples = np.linspace(0, 6, 2000)
        inside = [bool(is_inside(shape, pose, origin + s * d)) for s in samples]
        if any(inside):
            hits += 1
            assert t == pytest.approx(samples[inside.index(True)], abs=0.004)
        else:
            assert t == NOTHING or not is_inside(shape, pose, origin + (t + 0.004) * d)
    assert hits


def test_rays_meet_a_plane_from_outside_and_within_its_extent():
    pose, down = Pose(np.eye(3), np.zeros(3)), np.array([0, 0, -1.0])
    assert ray_distance(zw.Plane(), pose, np.array([9.0, 0, 2]), down) == 2
    assert ray_distance(zw.Plane(), pose, np.array([9.0, 0, -2]), -down) == NOTHING
    assert ray_distance(zw.Plane(extent=(1, 0)), pose, np.array([9.0, 0, 2]), down) == NOTHING
    assert ray_distance(zw.Plane(extent=(1, 0)), pose, np.array([0.5, 9, 2]), down) == 2


TURNED = ((0, -1, 0), (1, 0, 0), (0, 0, 1))
MISTAKES = [
    (lambda: zw.SiteSensor("s", "acceleration", "imu"), "the kinds are accelerometer"),
    (lambda: zw.SiteSensor("", "gyro", "imu"), "non-empty string"),
    (lambda: zw.FrameSensor("s", "linear_acceleration", "a", relative_to="b"), "give None"),
    (lambda: zw.TouchSensor("s", "imu", zw.Plane()), "must be one of zw.Sphere"),
    (
        lambda: zw.TouchSensor("s", "imu", zw.Sphere(0.1, position=(0, 0, 1))),
        r"'s' has the position \(0, 0, 1",
    ),
    (
        lambda: zw.InsideSensor("s", "imu", "b", zw.Box(1, 1, 1, orientation=TURNED)),
        "'s' has the orientation",
    ),
    (
        lambda: zw.ContactSensor("s", frame="imu", zone=zw.Sphere(1, position=(1, 0, 0))),
        "zw.Frame at that pose",
    ),
    (lambda: zw.RangeSensor("s", "imu", data=("colour",)), "the fields are distance"),
    (lambda: zw.ContactSensor("s", frame="imu"), "both frame and zone"),
    (lambda: zw.ContactSensor("s", reduce="least"), "one of none, mindist"),
    (lambda: zw.ContactSensor("s", ("geom", "a")), r"\('shape', name\) or \('body', name\)"),
    (lambda: zw.JointSensor("s", "position", "a", cutoff=-1), "at least 0"),
    (lambda: zw.Camera("c", resolution=(0, 3)), "at least 1"),
]


@pytest.mark.parametrize(("make", "words"), MISTAKES)
def test_a_mistake_in_a_sensor_is_reported(make, words):
    with pytest.raises(DescriptionError, match=words):
        make()


REFERENCES = [
    (zw.SiteSensor("s", "gyro", "eye"), "no frame 'eye'"),
    (zw.JointSensor("s", "position", "ankle"), "no joint 'ankle'"),
    (zw.TendonSensor("s", "position", "rope"), "no tendon 'rope'"),
    (zw.ActuatorSensor("s", "force", "motor"), "no actuator 'motor'"),
    (zw.CameraSensor("s", "imu", "eye"), "no camera 'eye'"),
    (zw.SubtreeSensor("s", "mass_centre", "bobb"), "no body 'bobb'"),
    (zw.ContactSensor("s", ("shape", "ball")), "no shape 'ball'"),
    (zw.JointSensor("s", "quaternion", "angle"), "must be a ball joint"),
]


@pytest.mark.parametrize(("sensor", "words"), REFERENCES)
def test_a_name_that_a_sensor_refers_to_must_exist(sensor, words):
    with pytest.raises((UnknownNameError, DescriptionError), match=words):
        pendulum().replace(sensors=(sensor,))
    with pytest.raises(DescriptionError, match="the sensor name 'gyro' is used twice"):
        pendulum().replace(sensors=(pendulum().sensors[1],) * 2)


def test_sensors_and_cameras_survive_json():
    m = pendulum(cameras=(zw.Camera("eye", "bob", fovy=1.0, resolution=(320, 240)),))
    m = m.replace(
        sensors=(
            *m.sensors,
            zw.CameraSensor("pixels", "world", "eye"),
            zw.ContactSensor("net", frame="imu", zone=zw.Box(1, 1, 1), data=("force",), count=2),
        )
    )
    assert zw.Mechanism.from_json(m.to_json()) == m
