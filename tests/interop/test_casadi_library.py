"""Functions of a mechanism in CasADi as a shared library and as SX expressions: values and Jacobians against
the float reference, and what only they can do.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.faults.processes import run
from tests.interop import cases
from tests.interop.test_casadi import ARM, FAST, PAYLOAD, QUIET, arguments, close, outputs
from zwang.errors import ArgumentError, MissingExtraError, StateError, TraceError, WriteError
from zwang.interop import casadi_library
from zwang.kinematics.configuration import configuration_rate
from zwang.mechanism.samples import double_pendulum

casadi = pytest.importorskip("casadi")
interop = pytest.importorskip("zwang.interop.casadi")

OF_ARM = ("forward_dynamics", "frame_pose", "step")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """Functions of the arm as libraries."""
    folder = tmp_path_factory.mktemp("libraries")
    return {
        name: interop.function(getattr(FAST, name), library=folder / name, **cases.FUNCTIONS[name])
        for name in OF_ARM
    }


@pytest.fixture(scope="module")
def ball(tmp_path_factory):
    """The step of a ball on the floor, with contacts, as a library."""
    path = tmp_path_factory.mktemp("ball") / "ball"
    return interop.function(zw.compile(cases.falling_ball()).step, step=0.002, library=path)


def in_float_text(name: str, *given) -> list[np.ndarray]:
    """What the function on floats returns, not compiled."""
    *arrays, payload = given
    m = ARM.subs({"payload": float(np.ravel(payload)[0])})
    arrays = [x if x.ndim else float(x) for x in arrays]
    found = getattr(zw, name)(m, *arrays, **cases.FUNCTIONS[name])
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("name", OF_ARM)
def test_a_library_has_the_values_and_sparsity_of_the_machine_code(name, libraries):
    given, library = arguments(name), libraries[name]
    callback = interop.function(getattr(FAST, name), library=False, **cases.FUNCTIONS[name])
    at_values = [*given, *outputs(library(*given))]
    pairs = ((library, callback, given), (library.jacobian(), callback.jacobian(), at_values))
    for f, g, given in pairs:
        assert (f.name_in(), f.name_out()) == (g.name_in(), g.name_out())
        assert [f.sparsity_out(k) for k in range(f.n_out())] == [g.sparsity_out(k) for k in range(g.n_out())]
        for x, y in zip(outputs(f(*given)), outputs(g(*given)), strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    ("form", "name"),
    [
        *itertools.product(["library", "symbolic"], ["forward_dynamics", "frame_pose"]),
        ("symbolic", "integrate_configuration"),
    ],
)
def test_values_are_those_of_the_float_text(name, form, libraries):
    given = arguments(name)
    if form == "symbolic":
        function = interop.function(getattr(FAST, name), symbolic=True, **cases.FUNCTIONS[name])
    else:
        function = libraries[name]
    for x, y in zip(outputs(function(*given)), in_float_text(name, *given), strict=True):
        close(x, np.reshape(y, x.shape))


@pytest.mark.parametrize("form", ["library", "symbolic"])
def test_jacobians_are_those_of_the_derivatives_of_the_dynamics(form, libraries):
    *given, payload = arguments("forward_dynamics")
    function = libraries["forward_dynamics"]
    if form == "symbolic":
        function = interop.function(FAST.forward_dynamics, symbolic=True)
    by_q, by_v, by_tau, by_parameters = outputs(
        function.jacobian()(*given, payload, function(*given, payload))
    )
    params = {"payload": PAYLOAD}
    expected = FAST.forward_dynamics_derivatives(*given, params=params)
    tree = ARM.subs(params).tree
    G = np.stack([configuration_rate(tree, given[0], unit) for unit in np.eye(ARM.nv)], axis=1).astype(float)
    close(by_q @ G, expected.dq)
    close(by_v, expected.dv)
    close(by_tau, expected.dtau)
    close(by_parameters, expected.parameters)


def test_a_step_with_contacts_has_the_derivatives_of_differences(ball):
    given = cases.rolling()
    values = outputs(ball(*given))
    expected = zw.compile(cases.falling_ball()).step(*given, step=0.002)
    np.testing.assert_array_equal(values[0].ravel(), expected.q)
    np.testing.assert_array_equal(values[1].ravel(), expected.v)
    blocks = outputs(ball.jacobian()(*given, *values))
    for k, x in enumerate(given):

        def of_one(y, k=k):
            return outputs(ball(*given[:k], y, *given[k + 1 :]))

        close(np.concatenate(blocks[k::3]), cases.central_differences(of_one, x), 1e-6)


def test_a_library_has_the_jacobian_of_a_step_that_depends_on_time(tmp_path):
    fast = zw.compile(cases.driven_pendulum())
    given = [*cases.driven(0.5, 0.4), 0.5, 0.4]
    library = interop.function(fast.step, step=0.002, library=tmp_path / "driven")
    callback = interop.function(fast.step, step=0.002, library=False)
    values = outputs(callback(*given))
    for x, y in zip(outputs(library(*given)), values, strict=True):
        np.testing.assert_array_equal(x, y)
    for x, y in zip(*(outputs(f.jacobian()(*given, *values)) for f in (library, callback)), strict=True):
        close(x, y)


def test_parallel_maps_and_copies_have_the_same_values(ball):
    given = cases.rolling()
    one, count = outputs(ball(*given)), 16
    copy = casadi.Function.deserialize(ball.serialize())
    many = copy.map(count, "thread", 2)(*(np.tile(x[:, None], count) for x in given))
    for x, y in zip(outputs(many), one, strict=True):
        np.testing.assert_array_equal(x, np.tile(y, count))


def test_a_library_needs_no_zwang(ball, tmp_path):
    """Another process, which cannot import zwang, loads a function that is saved."""
    ball.save(str(tmp_path / "step.casadi"))
    code = (
        "import sys; sys.modules['zwang'] = None\n"
        "import casadi, numpy\n"
        f"step = casadi.Function.load({str(tmp_path / 'step.casadi')!r})\n"
        f"given = {[x.tolist() for x in cases.rolling()]!r}\n"
        "print([float(x).hex() for x in numpy.array(step(*given)[1]).ravel()])\n"
        "print(step.jacobian().numel_out(0))\n"
    )
    environment = os.environ | {"PYTHONPATH": ""}
    paths = [path for path in sys.path if path.endswith("-packages")]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    v = outputs(ball(*cases.rolling()))[1]
    assert done.stdout.splitlines() == [str([float(x).hex() for x in v.ravel()]), "49"]


def test_ipopt_finds_the_same_motion_with_exact_hessians_of_each_form(tmp_path):
    """A pendulum is brought from rest to an angle, with least effort."""
    pendulum = zw.Mechanism(
        "pendulum",
        [zw.Body("rod", zw.Revolute("hinge", (0, 1, 0)), mass=1.0, com=(0, 0, -0.5), inertia=(0.1,) * 3)],
    )
    step, settings = zw.compile(pendulum).step, {"step": 0.1, "integrator": "rk4"}
    forms = ({}, {"library": tmp_path / "pendulum", "derivatives": 2}, {"symbolic": True})
    found = []
    for form in forms:
        function, count = interop.function(step, **settings, **form), 12
        opti = casadi.Opti()
        x, u = opti.variable(2, count + 1), opti.variable(1, count)
        for k in range(count):
            opti.subject_to(x[:, k + 1] == casadi.vertcat(*function(x[0, k], x[1, k], u[k])))
        opti.subject_to(x[:, 0] == 0)
        opti.subject_to(x[:, count] == casadi.vertcat(1.5, 0))
        opti.minimize(casadi.sumsqr(u))
        opti.solver("ipopt", QUIET)
        found.append(opti.solve().value(u))
    close(found[1], found[0], 1e-9)
    close(found[2], found[0], 1e-9)


def test_expressions_take_sx_symbols():
    function = interop.function(FAST.mass_matrix, symbolic=True)
    q, payload = casadi.SX.sym("q", ARM.nq), casadi.SX.sym("payload")
    M = casadi.Function("M", [q, payload], [function(q, payload)])
    given = arguments("mass_matrix")
    close(np.array(M(*given)), in_float_text("mass_matrix", *given)[0])


def test_expressions_have_hyperbolic_functions():
    p = sp.Symbol("p")
    mass = sum(f(p / 4) for f in (sp.sinh, sp.cosh, sp.tanh, sp.sech, sp.asinh, sp.atanh)) + sp.acosh(1 + p)
    slide = zw.compile(zw.Mechanism("slide", [zw.Body("b", zw.Prismatic("x"), mass=mass)]))
    function = interop.function(slide.mass_matrix, symbolic=True)
    close(np.array(function([0.0], 1.5)), [[float(mass.subs(p, 1.5))]])


def test_a_library_is_compiled_once(tmp_path, monkeypatch):
    path = tmp_path / "centre"
    first = interop.function(FAST.mass_centre, library=path)
    monkeypatch.setattr(casadi_library, "shared_library", lambda *_: pytest.fail("compiled again"))
    again = interop.function(FAST.mass_centre, library=path)
    given = arguments("mass_centre")
    np.testing.assert_array_equal(np.array(again(*given)), np.array(first(*given)))


def test_short_code_is_a_library_by_default(monkeypatch):
    """Values, Jacobians and Hessians are those of the callback, which there is without a C compiler."""
    fast = zw.compile(double_pendulum())
    names = {"forward_dynamics": "External", "momentum": "External"}
    assert {name: interop.function(getattr(fast, name)).class_name() for name in names} == names
    library = interop.function(fast.forward_dynamics)
    contact_step = interop.function(zw.compile(cases.falling_ball()).step, step=0.002)
    given_jacobian = interop.function(fast.forward_dynamics, jacobian=lambda *_: np.zeros((2, 6)))
    monkeypatch.setattr(casadi_library, "c_compiler", without_compiler)
    callback = interop.function(fast.forward_dynamics)
    x = casadi.MX.sym("x", 6)
    results = []
    for function in (library, callback):
        a = function(x[:2], x[2:4], x[4:])
        both = [a, casadi.jacobian(a, x), casadi.hessian(casadi.sumsqr(a), x)[0]]
        results.append(outputs(casadi.Function("all", [x], both)(np.linspace(0.3, 1.2, 6))))
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)
    kinds = {f.class_name() for f in (contact_step, given_jacobian, callback)}
    assert kinds == {"CallbackInternal"}
    with pytest.raises(RuntimeError, match="only the first derivatives are known"):
        contact_step.jacobian().jacobian()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_that_ends_leaves_the_libraries_of_its_parent():
    program = """
        import os, sys
        import zwang as zw
        from zwang.interop import casadi, casadi_library
        from zwang.mechanism.samples import double_pendulum

        fast = zw.compile(double_pendulum())
        first = casadi.function(fast.forward_dynamics)
        child = os.fork()
        if not child:
            sys.exit()
        os.waitpid(child, 0)
        print(first.class_name(), casadi.function(fast.momentum).class_name(), casadi_library._folder())
    """
    *kinds, folder = run(program).split()
    assert kinds == ["External", "External"]
    assert not os.path.exists(folder)  # it is deleted at the end of its own process


def test_a_deleted_folder_of_libraries_is_made_again():
    fast = zw.compile(double_pendulum())
    interop.function(fast.momentum)
    shutil.rmtree(casadi_library._folder())
    assert interop.function(fast.momentum).class_name() == "External"


@pytest.mark.parametrize("cached", ["on", "off"])
def test_without_room_for_temporary_files_short_code_is_a_callback(tmp_path, monkeypatch, cached):
    fast = zw.compile(double_pendulum())
    library, given = interop.function(fast.forward_dynamics), ([0.1, 0.2], [0, 0], [0, 0])
    monkeypatch.setenv("ZWANG_CACHE", cached)
    monkeypatch.setattr(casadi_library, "_FOLDERS", {})
    monkeypatch.setattr(casadi_library.tempfile, "tempdir", str(tmp_path / "nowhere"))
    callback = interop.function(fast.forward_dynamics)
    assert callback.class_name() == "CallbackInternal"
    np.testing.assert_array_equal(np.array(callback(*given)), np.array(library(*given)))


def test_a_library_that_cannot_be_written_is_a_callback(monkeypatch):
    def full(path, content):
        raise WriteError(f"{str(path)!r} cannot be written: No space left on device")

    monkeypatch.setattr(casadi_library, "_FOLDERS", {})
    monkeypatch.setattr(casadi_library, "write_file", full)
    function = interop.function(zw.compile(double_pendulum()).forward_dynamics)
    assert function.class_name() == "CallbackInternal"


def without_compiler():
    raise MissingExtraError("there is no C compiler")


def test_a_library_by_the_compiler_of_ziglang(tmp_path, monkeypatch):
    pytest.importorskip("ziglang")
    fast = zw.compile(double_pendulum())
    monkeypatch.setattr("zwang.interop.c_compiler.shutil.which", lambda _: None)
    library = interop.function(fast.mass_matrix, library=tmp_path / "M")
    q = [0.3, -1.1]
    np.testing.assert_array_equal(np.array(library(q)), fast.mass_matrix(q))
    J = interop.function(fast.mass_matrix, library=False).jacobian()
    for a, b in zip(outputs(library.jacobian()(q, 0)), outputs(J(q, 0)), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.skipif(sys.platform == "win32", reason="a library in use cannot be overwritten there")
def test_an_older_library_in_use_is_reported(tmp_path):
    kept = interop.function(FAST.mass_centre, library=tmp_path / "f", name="f")
    with pytest.raises(ArgumentError, match="uses an older library of this path"):
        interop.function(FAST.momentum, library=tmp_path / "f", name="f")
    del kept


def test_wrong_calls_are_explained(tmp_path, monkeypatch):
    centre, step = FAST.mass_centre, zw.compile(cases.falling_ball()).step
    for wrong, text in (
        ({"library": 3}, "library is 3; give the path"),
        ({"library": tmp_path / "none" / "f"}, "there is no folder"),
        ({"library": tmp_path / "f.c"}, "its C code lies beside it"),
        ({"library": tmp_path / "f", "derivatives": 3}, "derivatives is 3"),
        ({"library": tmp_path / "f", "name": "double"}, "word of C.*name='double_function'"),
        ({"library": tmp_path / "f", "name": "isnan"}, "name is 'isnan'"),
        ({"library": tmp_path / "f", "symbolic": True}, "omit library="),
        ({"library": tmp_path / "f", "jacobian": np.zeros}, "jacobian= is a Python function"),
        ({"name": "a b"}, "name is 'a b'"),
    ):
        with pytest.raises(ArgumentError, match=text):
            interop.function(centre, **wrong)
    with pytest.raises(TraceError, match="omit symbolic=True"):
        interop.function(step, symbolic=True)
    with pytest.raises(TraceError, match="only the first derivatives are known"):
        interop.function(step, library=tmp_path / "f", derivatives=2)
    monkeypatch.setattr("zwang.interop.c_compiler.shutil.which", lambda _: None)
    monkeypatch.setattr("zwang.interop.c_compiler.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="pip install 'zwang"):
        interop.function(centre, library=tmp_path / "g")


@pytest.mark.parametrize("kind", [casadi.SX, casadi.MX])
def test_a_symbol_in_a_function_of_numbers_is_explained(kind):
    q = kind.sym("q", ARM.nq)
    FAST.mass_centre(arguments("mass_centre")[0], params={"payload": 1})
    for call in (
        lambda: zw.mass_centre(ARM.subs({"payload": 1}), q),
        lambda: FAST.mass_centre(q, params={"payload": 1}),
    ):
        with pytest.raises(StateError, match=r"q.* make a function by zwang.interop.casadi.function"):
            call()
