"""Exported C99 libraries, compiled by the C compiler, give the bits of zwang's own functions."""

import ctypes
import platform
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zwang as zw
from tests.compiler.random_functions import SIZE, random_function, random_inputs
from tests.interop.exported_models import HARD, MODELS, PARAMS, SOFT, arm, dropped, servo, symbolic_furuta
from zwang.compiler.backends.c import c_function, c_text, preamble
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.interpreter import interpret
from zwang.compiler.passes.expand import expand
from zwang.compiler.pipeline import optimise
from zwang.errors import (
    ArgumentError,
    DescriptionError,
    FormatError,
    ParameterError,
    SimulationError,
    SimulationWarning,
    UnknownNameError,
    WriteError,
)
from zwang.interop.c_compiler import zig
from zwang.interop.identifiers import comment_text, library_name, unique_identifiers
from zwang.mechanism.samples import FURUTA, four_bar, furuta

CC = shutil.which("cc")
needs_cc = pytest.mark.needs("cc")
FLAGS = "-std=c99 -ffp-contract=off -Wall -Wextra -Werror -pedantic -fPIC".split()


def built(folder: Path, *options: str, compiler: str = str(CC)) -> Path:
    """The library of an exported folder."""
    [source] = [path for path in folder.glob("*.c") if path.name != "main.c"]
    library = folder / "library.so"
    command = [compiler, *FLAGS, *(options or ["-O1"]), "-shared", str(source), "-o", str(library), "-lm"]
    subprocess.run(command, check=True, cwd=folder)
    return library


def run_example(folder: Path, *options: str, compiler: str = str(CC)) -> subprocess.CompletedProcess:
    """The example, compiled and run. compiler: its command, with options."""
    sources = [str(path) for path in folder.glob("*.c")]
    program = folder / "example"
    command = [*shlex.split(compiler), *FLAGS, *(options or ["-O1"]), *sources, "-o", str(program), "-lm"]
    subprocess.run(command, check=True, cwd=folder)
    return subprocess.run([str(program)], capture_output=True, text=True)


def called(function, inputs, sizes, dtype=float):
    """The outputs of a C function, whose elements are not set before."""
    arrays = [np.ascontiguousarray(x, dtype) for x in inputs]
    outputs = [np.full(size, np.nan, dtype) for size in sizes]
    function(*(ctypes.c_void_p(x.ctypes.data) for x in (*arrays, *outputs)))
    return outputs


def state_of(header: str, dtype=float) -> np.dtype:
    """The layout of the state, as the header says it."""
    sizes = {name: int(size) for name, size in re.findall(r"#define (\w+) (\d+) ", header)}
    fields: list = [("steps", "u8"), ("status", "i4"), ("solver_status", "i4")]
    for name, size in re.findall(r"^    (?:double|float) (\w+)\[(\w+)\]", header, re.MULTILINE):
        fields.append((name, np.dtype(dtype), (int(sizes.get(size, size)),)))
    return np.dtype(fields, align=True)


@needs_cc
@pytest.mark.parametrize("model", MODELS)
def test_the_example_of_every_model_runs_and_gives_the_same_bits(model, tmp_path):
    zw.export(MODELS[model](), tmp_path, functions=["step"], params=PARAMS.get(model))
    done = run_example(tmp_path, "-O0" if model == "impacts" else "-O1")
    assert done.returncode == 0 and "the same bits as zwang" in done.stdout, done.stdout


@needs_cc
def test_the_example_starts_with_the_control_of_a_keyframe(tmp_path):
    m = servo()
    zw.export(m, tmp_path, functions=["step"], q0="up")
    run = zw.simulate(m, "up", duration=0.2, progress=False)
    done = run_example(tmp_path)
    assert (
        done.returncode == 0 and float(re.search(r"q\[0\] = (.*)", done.stdout)[1]) == run.q.values[0, -1, 0]
    )
    library = ctypes.CDLL(str(built(tmp_path)))
    assert ctypes.c_double.in_dll(library, "servo_initial_control").value == 0.7


@needs_cc
def test_the_example_fails_if_the_digits_differ(tmp_path):
    zw.export(furuta(**FURUTA), tmp_path, functions=["step"])
    main = tmp_path / "main.c"
    text = main.read_text()
    assert text.count("FURUTA") == 0 and "0.1,\n" in text
    main.write_text(text.replace("0.1,\n", "0.10000000000001,\n"))
    done = run_example(tmp_path)
    assert done.returncode == 1 and "DIFFERENT" in done.stdout


@needs_cc
@pytest.mark.parametrize(
    ("model", "dtype"), [("soft contact", "float64"), ("arm", "float32"), ("sleep", "float64")]
)
def test_steps_are_those_of_simulate(model, dtype, tmp_path):
    m = MODELS[model]()
    zw.export(m, tmp_path, functions=["step"], dtype=dtype, step=0.004)
    library = ctypes.CDLL(str(built(tmp_path)))
    [header] = tmp_path.glob("*.h")
    name = header.stem
    layout = state_of(header.read_text(), dtype)
    state = np.zeros((), layout)
    count = m.nv if not m.inputs else len(m.inputs)
    control = np.random.default_rng(0).uniform(-1, 1, (80, count))
    pointer = ctypes.c_void_p(state.ctypes.data)
    getattr(library, f"{name}_initial_state")(pointer)
    found = []
    for u in control:
        row = np.ascontiguousarray(u, dtype)
        assert getattr(library, f"{name}_step")(pointer, ctypes.c_void_p(row.ctypes.data)) == 0
        found.append(np.concatenate([state["q"], state["v"]]))
    assert state["steps"] == 80
    worlds = zw.Worlds(m, 1, step=0.004, dtype=dtype)
    for u, row in zip(control, found, strict=True):
        worlds.step(u)
        np.testing.assert_array_equal(row, np.concatenate([worlds.q[0], worlds.v[0]]))


def test_an_initial_state_off_the_constraints_gives_the_warning_of_simulate(tmp_path):
    """The crank of a four-bar linkage, and what `zw.simulate` says of the same state."""
    m, q = four_bar(), [0.1, 0.2, 0.3]
    with pytest.warns(SimulationWarning, match="'loop' is violated") as told:
        zw.simulate(m, q, duration=0.002, progress=False)
    with pytest.warns(SimulationWarning) as exported:
        zw.export(m, tmp_path / "off", functions=["step"], q0=q)
    assert str(exported[0].message) == str(told[0].message)
    assert exported[0].filename == told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zw.export(m, tmp_path / "on", functions=["step"])
        zw.export(m, tmp_path / "without steps", functions=["mass_matrix"], q0=q)


@needs_cc
def test_a_failed_state_stays_as_it_is(tmp_path):
    """A control that is no number fails, with a text that says so."""
    zw.export(furuta(**FURUTA), tmp_path, functions=["step"], q0=[0.1, 0.2])
    library = ctypes.CDLL(str(built(tmp_path)))
    state = np.zeros((), state_of((tmp_path / "furuta.h").read_text()))
    pointer = ctypes.c_void_p(state.ctypes.data)
    library.furuta_initial_state(pointer)
    for u, expected in ((0.0, 0), (np.nan, 7), (0.0, 7)):
        control = np.array([u])
        assert library.furuta_step(pointer, ctypes.c_void_p(control.ctypes.data)) == expected
    assert state["steps"] == 1 and np.isfinite(state["q"]).all()
    library.furuta_status_text.restype = ctypes.c_char_p
    assert b"control is not a finite number" in library.furuta_status_text(7)
    assert library.furuta_status_text(-1) == library.furuta_status_text(99) == b"unknown status"


@needs_cc
def test_functions_give_the_bits_of_compiled_functions(tmp_path):
    m = symbolic_furuta()
    names = [
        "forward_dynamics", "inverse_dynamics", "mass_matrix", "bias_forces", "frame_pose", "frame_jacobian",
        "energy", "forward_dynamics_derivatives", "state_derivative", "frame_velocity",
    ]  # fmt: skip
    zw.export(m, tmp_path, functions=names, params={"m_p": 0.03}, frames=["pendulum"])
    library = ctypes.CDLL(str(built(tmp_path)))
    assert not (tmp_path / "main.c").exists()
    q, v, tau = np.random.default_rng(1).normal(size=(3, 2))
    p, fast = [0.04], zw.compile(m)
    params = {"m_p": 0.04}

    def check(name, inputs, sizes, expected):
        found = np.concatenate(called(getattr(library, f"furuta_{name}"), (*inputs, p), sizes))
        np.testing.assert_array_equal(found, np.concatenate([np.ravel(x) for x in expected]))

    a = fast.forward_dynamics(q, v, tau, params=params)
    check("forward_dynamics", (q, v, tau), [2], [a])
    check("inverse_dynamics", (q, v, a), [2], [fast.inverse_dynamics(q, v, a, params=params)])
    check("mass_matrix", (q,), [4], [fast.mass_matrix(q, params=params)])
    check("bias_forces", (q, v), [2], [fast.bias_forces(q, v, params=params)])
    check("energy", (q, v), [1, 1], fast.energy(q, v, params=params))
    check("frame_pose_pendulum", (q,), [9, 3], fast.frame_pose(q, "pendulum", params=params))
    check("frame_jacobian_pendulum", (q,), [12], [fast.frame_jacobian(q, "pendulum", params=params)])
    check("frame_velocity_pendulum", (q, v), [6], [fast.frame_velocity(q, v, "pendulum", params=params)])
    derivatives = fast.forward_dynamics_derivatives(q, v, tau, params=params)
    check("forward_dynamics_derivatives", (q, v, a), [4, 4, 4, 2], derivatives)
    u = [0.7]
    exact = zw.forward_dynamics(m.subs(params), q, v, [u[0], 0])
    found = called(library.furuta_state_derivative, ([0.0], q, v, u, p), [2, 2, 1])
    np.testing.assert_array_equal(found[0], v)
    np.testing.assert_allclose(found[1], exact, rtol=1e-12)
    assert found[2] == 0


@needs_cc
def test_sensors_are_those_of_the_exported_step(tmp_path):
    """A contact whose time constant is shorter than two steps of the export, but not than those of the
    options.
    """
    m = dropped(replace(SOFT, solref=(0.004, 1.0)))
    q = [0, 0, 0.05, *m.home[3:]]
    zw.export(m, tmp_path, functions=["step", "sensors", "external_wrenches"], step=0.01, q0=q)
    library = ctypes.CDLL(str(built(tmp_path)))
    [header] = [path.read_text() for path in tmp_path.glob("*.h")]
    assert "default 0" not in header  # C has no default arguments
    work = [int(size) for size in re.findall(r"work\[(\d+)\]: memory", header)]
    given = [q, np.zeros(6), np.zeros(6), [0.0]]
    acceleration, _ = called(library.dropped_box_sensors, given, [3, work[0]])
    wrenches, _ = called(library.dropped_box_external_wrenches, given, [12, work[1]])
    run = zw.simulate(m, q, duration=0.01, step=0.01, record={"sensors": True}, progress=False)
    np.testing.assert_array_equal(acceleration, run.sensor.values[0, 0])
    R = zw.frame_pose(m, q, "box").R
    np.testing.assert_allclose(R.T @ wrenches[9:], acceleration, rtol=1e-9)  # of 1 kg


@needs_cc
@pytest.mark.parametrize("model", ["arm", "soft contact"])
def test_sensors_and_frames_of_hostile_names_give_the_same_bits(model, tmp_path):
    m = MODELS[model]()
    zw.export(m, tmp_path, functions=["sensors", "frame_jacobian"])
    library = ctypes.CDLL(str(built(tmp_path)))
    [header] = [path.read_text() for path in tmp_path.glob("*.h")]
    fast = zw.compile(m)
    q = np.array(m.home or m.neutral, float)
    v = np.linspace(-1, 1, m.nv)
    control = np.linspace(0.1, 0.3, len(m.inputs) or m.nv)
    activation = [0.2] if model == "arm" else []
    expected = fast.sensors(q, v, control, activation, 0.0)
    name = library_name(None, m.name)
    work = int(re.search(r"work\[(\d+)\]: memory", header)[1]) if "work[" in header else 0
    size = sum(sensor.quantity.size for sensor in m.sensors)
    given = [x for x in (q, v, control, activation, [0.0]) if len(x)]
    found = called(getattr(library, f"{name}_sensors"), given, [size, work])[0]
    np.testing.assert_array_equal(found, np.concatenate(list(expected.values())))
    if model == "arm":
        assert "ARM_S_GYRO = 0, " in header and "ARM_S_IMU = 3, " in header
        [J] = called(library.arm_frame_jacobian_elbow, [q], [6 * m.nv])
        np.testing.assert_array_equal(J.reshape(6, -1), fast.frame_jacobian(q, "elbow/*"))


def test_the_vertices_of_meshes_are_written_once(tmp_path):
    """By all functions, and for contacts with the floor and with each other."""
    points = np.random.default_rng(0).normal(size=(2, 80, 3))
    points /= 10 * np.linalg.norm(points, axis=-1)[..., None]
    assets = "".join(
        f"<mesh name='m{k}' vertex='{' '.join(map(repr, own.ravel().tolist()))}'/>"
        for k, own in enumerate(points)
    )
    bodies = "".join(
        f"<body pos='0 0 {0.1 + 0.2 * k}'><freejoint/><geom type='mesh' mesh='m{k % 2}' mass='1'/>"
        f"<site name='s{k}'/></body>"
        for k in range(3)
    )
    text = (
        f"<mujoco><asset>{assets}</asset><worldbody><geom type='plane' size='1 1 1'/>{bodies}</worldbody>"
        "<sensor><accelerometer site='s0'/></sensor></mujoco>"
    )
    mechanism = zw.load("heap.xml", text=text)
    zw.export(mechanism, tmp_path, name="heap", functions=["step", "sensors"])
    source = (tmp_path / "heap.c").read_text()
    assert "heap_step_program" in source and "void heap_sensors" in source
    for body in mechanism.bodies[:2]:
        x = np.asarray(body.geometry[0].vertices)[1:, 0]  # the first vertex and the extents have tables, too
        assert source.count(repr(abs(sorted(x.tolist())[40]))) == 1


@needs_cc
@pytest.mark.parametrize("longest", [0])
def test_a_workspace_gives_the_bits_of_the_interpreter(tmp_path, longest):
    """Arrays that share memory are alive at different times, also in loops and branches."""
    programs = [optimise(trace(random_function(seed), {"x": (SIZE,)})) for seed in range(15)]
    names = (["x"], ["out"])
    functions = [
        c_function(p, f"f{k}", arguments=names, longest_on_stack=longest) for k, p in enumerate(programs)
    ]
    assert sum(f.work > 0 for f in functions) > 5
    (tmp_path / "all.c").write_text("\n".join([preamble("float64"), c_text(functions)]))
    library = ctypes.CDLL(str(built(tmp_path, "-O0")))
    for seed, (program, function) in enumerate(zip(programs, functions, strict=True)):
        reference = expand(program, "float64")
        for x in random_inputs(seed, 3):
            sizes = [program.outputs[0].size, function.work]
            found = called(getattr(library, f"f{seed}"), [x], sizes)[0]
            np.testing.assert_array_equal(found, interpret(reference, {"x": x}, "float64")["out"])


@needs_cc
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_the_stack_is_not_larger_than_the_header_says(level, tmp_path):
    zw.export(arm(), tmp_path)
    subprocess.run([CC, *FLAGS, level, "-fstack-usage", "-c", "arm.c"], check=True, cwd=tmp_path)
    [usage] = tmp_path.glob("*.su")
    used = {
        row.split("\t")[0].rpartition(":")[2]: int(row.split("\t")[1])
        for row in usage.read_text().splitlines()
        if "\t" in row
    }
    header = (tmp_path / "arm.h").read_text()
    stated = {
        name: int(size)
        for size, name in re.findall(r"At most (\d+) bytes of the stack.*?void (\w+)\(", header, re.DOTALL)
    }
    stated["arm_step"] = int(re.search(r"ARM_STEP_STACK (\d+)", header)[1])
    assert len(stated) == 10
    # the step's program may be inlined, or a copy of it with other arguments
    used["arm_step"] += sum(size for name, size in used.items() if name.startswith("arm_step_program"))
    for name, most in stated.items():
        assert 0 < used[name] <= most, name


def test_long_arrays_lie_in_the_state_and_share_memory():
    """The step's arrays of a contact model need less memory together than one after the other."""
    from_step = optimise(trace(random_function(3), {"x": (SIZE,)}))
    apart = re.findall(r"real a\d+\[(\d+)\];", c_function(from_step, "f").text)
    shared = c_function(from_step, "f", longest_on_stack=0)
    assert 0 < shared.work <= sum(map(int, apart)) and "real a" not in shared.text


def test_clang_gives_the_same_bits_without_a_warning(tmp_path):
    """Clang, or that of the package ziglang."""
    clang = "clang"
    if shutil.which(clang) is None:
        pytest.importorskip("ziglang")
        clang = shlex.join(zig())
    zw.export(arm(), tmp_path)
    done = run_example(tmp_path, compiler=clang)
    assert done.returncode == 0, done.stdout


WITHOUT_C_LIBRARY = {
    "math.h": """
#pragma once
#define NAN __builtin_nanf("")
#define INFINITY __builtin_inff()
double fma(double, double, double), sqrt(double), fabs(double), floor(double);
#define copysign(x, y) __builtin_copysign(x, y)
""",
    "string.h": """
#pragma once
#include <stddef.h>
void *memcpy(void *, const void *, size_t), *memset(void *, int, size_t);
int memcmp(const void *, const void *, size_t);
""",
    "stdio.h": """
#pragma once
#define printf(...) ((void)0)
""",
    "libm.a": "!<arch>\n",
    "start.c": """
int main(void);
void _start(void);

/* the first instructions of the program, which end it by the system call exit */
__attribute__((force_align_arg_pointer)) void _start(void)
{
    const int status = main();
    __asm__ volatile("int $0x80" : : "a"(1), "b"(status));
}
""",
}
"""What the example needs of a C library, beside the compiler's own run-time library: a C library for another
processor would take a minute to compile.
"""


def test_32_bit_code_gives_the_same_bits(tmp_path):
    """By the C compiler of the system, or on Linux by that of the package ziglang where it has no 32-bit
    library.
    """
    zw.export(arm(), tmp_path, functions=["step"])
    probe = tmp_path / "probe"
    probe.mkdir()
    (probe / "probe.c").write_text("#include <math.h>\nint main(void) { return (int)floor(0.5); }\n")
    options, compiler = ["-m32"], str(CC)
    if (
        CC is None
        or subprocess.run([CC, "-m32", "probe.c", "-lm"], cwd=probe, capture_output=True).returncode
    ):
        if sys.platform != "linux" or platform.machine() != "x86_64" or find_spec("ziglang") is None:
            pytest.skip("the C compiler has no 32-bit library")
        for name, text in WITHOUT_C_LIBRARY.items():
            (tmp_path / name).write_text(text)
        options = ["-target", "x86-freestanding-none", f"-I{tmp_path}", f"-L{tmp_path}"]
        compiler = shlex.join(zig())
    assert run_example(tmp_path, "-O1", *options, "-msse2", "-mfpmath=sse", compiler=compiler).returncode == 0


@needs_cc
def test_a_compiler_that_does_not_round_each_operation_is_refused(tmp_path):
    zw.export(furuta(**FURUTA), tmp_path, functions=["step"])
    for option in ("-ffast-math", *["-mfpmath=387"] * (platform.machine() == "x86_64")):
        done = subprocess.run(
            [CC, "-std=c99", option, "-c", "furuta.c"], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode and "error" in done.stderr


@pytest.mark.needs("cmake")
@needs_cc
@pytest.mark.parametrize("name", ["test", "m"])  # targets of CMake and of the linker
def test_cmake_builds_the_library_and_its_test_passes(name, tmp_path):
    zw.export(furuta(**FURUTA), tmp_path, name=name, functions=["step"])
    for command in (
        "cmake -S . -B build",
        "cmake --build build",
        "ctest --test-dir build --output-on-failure",
    ):
        subprocess.run(command.split(), check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)


def test_an_export_is_the_same_each_time_and_keeps_other_files(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    reports = [zw.export(furuta(**FURUTA), tmp_path) for _ in range(2)]
    assert str(reports[0]) == str(reports[1]) and reports[0].format == "c99"
    files = {Path(note.where).name for note in reports[0].of_kind("written")}
    assert files == {"furuta.h", "furuta.c", "main.c", "CMakeLists.txt"}
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_examples_that_the_user_wrote_or_changed_are_kept(tmp_path):
    other = furuta(**FURUTA | {"m_p": 0.1})
    zw.export(furuta(**FURUTA), tmp_path, functions=["step"])
    example = tmp_path / "main.c"
    unchanged = example.read_bytes()
    example.write_bytes(unchanged.replace(b"\n", b"\r\n"))  # as an editor or git on Windows
    assert not zw.export(other, tmp_path, functions=["step"]).of_kind("kept")
    assert example.read_bytes() != unchanged  # it compares with the state of the other mechanism
    changed = example.read_bytes() + b"/* mine */\n"
    example.write_bytes(changed)
    (tmp_path / "CMakeLists.txt").write_text("project(mine)\n")
    report = zw.export(furuta(**FURUTA), tmp_path, functions=["step"])
    assert {Path(note.where).name for note in report.of_kind("kept")} == {"main.c", "CMakeLists.txt"}
    assert {Path(note.where).name for note in report.of_kind("written")} == {"furuta.h", "furuta.c"}
    assert example.read_bytes() == changed and (tmp_path / "CMakeLists.txt").read_text() == "project(mine)\n"


HOSTILE = [
    '*/ int main(){system("x");} /*',
    "a\\\nb",
    "??/",
    "",
    "1st",
    "ä",
    "double",
    "math",
    "x" * 300,
    "a.b",
]


@given(st.text(max_size=40) | st.sampled_from(HOSTILE))
def test_a_name_becomes_a_c_identifier(name):
    assert re.fullmatch("[A-Za-z][A-Za-z0-9_]{0,19}", library_name(None, name))
    text = comment_text(name)
    assert "*" not in text and "\\" not in text and "?" not in text and text.isprintable()
    words = unique_identifiers([name, name, name.upper(), name + "_2"], 12)
    assert len({word.lower() for word in words}) == 4
    assert all(re.fullmatch("[A-Za-z][A-Za-z0-9_]{0,11}", word) for word in words)


@needs_cc
def test_a_mechanism_of_hostile_names_compiles(tmp_path):
    """Names enter comments and identifiers only as letters and digits."""
    evil = HOSTILE[0]
    body = zw.Body(evil, joint=zw.Revolute('a\\\n"b??/', axis=(0, 1, 0)), mass=1.0, com=(0, 0, -1))
    m = zw.Mechanism(
        evil, [body], forces=[zw.Motor("%s *//*", 'a\\\n"b??/')], frames=[zw.Frame("math.h", evil)]
    )
    zw.export(m, tmp_path)
    text = (
        next(tmp_path.glob("*.h")).read_text()
        + next(tmp_path.glob("n*.c"), next(tmp_path.glob("*.c"))).read_text()
    )
    assert "system" not in re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).replace("int_main_system", "")
    assert run_example(tmp_path).returncode == 0


@pytest.mark.parametrize("name", ["", "1st", "a b", "f(){}", "ä", "x" * 21, "math", "NUL", "_x", "wasm"])
def test_a_given_name_must_be_an_identifier(name, tmp_path):
    with pytest.raises(DescriptionError, match="C identifier"):
        zw.export(furuta(**FURUTA), tmp_path, name=name)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"path": "furuta.zip"}, FormatError, "folder"),
        ({"format": "rust"}, FormatError, "c99"),
        ({"step": 0.0}, SimulationError, "step"),
        ({"integrator": "dop853"}, SimulationError, "fixed size"),
        ({"integrator": "eulr"}, SimulationError, "euler"),
        ({"dtype": "float16"}, DescriptionError, "float32"),
        ({"functions": ["stepp"]}, UnknownNameError, "step"),
        ({"functions": ["constrained_inverse_dynamics"]}, UnknownNameError, "inverse_dynamics"),
        ({"functions": ["sensors"]}, DescriptionError, "sensors"),
        ({"frames": ["hand"]}, UnknownNameError, "pendulum"),
        ({"params": {"m_p": 1}}, ParameterError, "m_p"),
        ({"mechanism": "furuta"}, ArgumentError, "mechanism"),
        ({"mechanism": zw.Mechanism()}, FormatError, "no joint"),
        ({"mechanism": symbolic_furuta()}, ParameterError, "m_p"),
        ({"mechanism": dropped(HARD), "functions": ["state_derivative"]}, FormatError, "hard"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named(arguments, error, words, tmp_path):
    given = {"mechanism": furuta(**FURUTA), "path": "code", **arguments}
    given["path"] = tmp_path / given["path"]
    with pytest.raises(error, match=words):
        zw.export(**given)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_created_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="file"):
        zw.export(furuta(**FURUTA), tmp_path / "file" / "code", functions=["step"])
    with pytest.raises(WriteError, match="null"):
        zw.export(furuta(**FURUTA), tmp_path / "co\0de", functions=["mass_matrix"])


def test_the_command_line_exports(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "zwang", "export", "furuta", str(tmp_path / "code"), "--function", "step"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "code").iterdir()} == {
        "furuta.h",
        "furuta.c",
        "main.c",
        "CMakeLists.txt",
    }
