"""Functions of a mechanism in PyTorch: values, gradcheck, opcheck, vmap and torch.compile."""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

import zwang as zw
from tests.interop import cases
from zwang.api.functions.function_table import FUNCTIONS as TABLE
from zwang.errors import ArgumentError, ParameterError, ShapeError, StateError, TraceError

torch = pytest.importorskip("torch")
interop = pytest.importorskip("zwang.interop.torch")

ARM = cases.arm_on_a_ball()
FAST = zw.compile(ARM)
STATE = cases.state(ARM)
PARAMS = {"payload": 0.7}


def in_torch(name: str):
    return interop.function(getattr(FAST, name), **cases.FUNCTIONS[name])


def arguments(name: str, state=STATE) -> list:
    names = cases.ARRAYS.get(name) or TABLE[name].arguments
    return [torch.tensor(state[argument], requires_grad=True) for argument in names]


def with_payload(name: str):
    """The function of its tensors and of the payload, with all results in one tensor."""
    function = in_torch(name)

    def call(*given):
        *given, payload = given
        found = function(*given, params={"payload": payload})
        if isinstance(found, dict):
            found = tuple(found.values())
        parts = found if isinstance(found, tuple) else (found,)
        return torch.cat([part.reshape(-1) for part in parts])

    return call


@pytest.mark.parametrize("name", cases.FUNCTIONS)
def test_values_are_those_of_the_compiled_function(name):
    for worlds in ((), (3,), (2, 3)):
        given = arguments(name, cases.state(ARM, worlds))
        found = in_torch(name)(*given, params=PARAMS)
        arrays = [x.detach().numpy() for x in given]
        expected = getattr(FAST, name)(*arrays, **cases.FUNCTIONS[name], params=PARAMS)
        if isinstance(expected, dict):
            assert list(found) == list(expected)
            found, expected = tuple(found.values()), tuple(expected.values())
        found = found if isinstance(found, tuple) else (found,)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for x, y in zip(found, expected, strict=False):
            np.testing.assert_array_equal(x.detach().numpy(), y)


@pytest.mark.parametrize("name", cases.FUNCTIONS)
def test_gradcheck(name):
    payload = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    given = (*arguments(name), payload)
    assert torch.autograd.gradcheck(with_payload(name), given, check_batched_grad=True, check_forward_ad=True)


def test_second_derivatives():
    payload = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    for name in ("energy", "forward_dynamics"):
        assert torch.autograd.gradgradcheck(with_payload(name), (*arguments(name), payload))


def test_the_operator_passes_opcheck():
    function = in_torch("energy")
    q, v = arguments("energy")
    payload = torch.tensor([0.7], dtype=torch.float64, requires_grad=True)
    function(q, v, params=PARAMS)
    checks = torch.library.opcheck(torch.ops.zwang.evaluate, ([q, v, payload], function._key))
    assert set(checks.values()) == {"SUCCESS"}


def test_vmap_broadcasts_and_any_strides_are_read():
    worlds = {name: torch.tensor(x) for name, x in cases.state(ARM, (4, 3)).items()}
    q, v, tau = (worlds[name] for name in ("q", "v", "tau"))
    f = in_torch("forward_dynamics")

    def one(q, v, tau):
        return f(q, v, tau, params=PARAMS)

    over_both = torch.func.vmap(torch.func.vmap(one, in_dims=(0, 0, None)), in_dims=(0, None, 0))
    expected = FAST.forward_dynamics(*(x.numpy() for x in (q, v[0], tau[:, :1])), params=PARAMS)
    np.testing.assert_array_equal(over_both(q, v[0], tau[:, 0]).numpy(), expected)
    turned = f(
        q.transpose(0, 1),
        v[:, ::2].new_tensor(v.numpy()).transpose(0, 1),
        tau.mT.mT.transpose(0, 1),
        params=PARAMS,
    )
    expected = FAST.forward_dynamics(*(x.numpy().swapaxes(0, 1) for x in (q, v, tau)), params=PARAMS)
    np.testing.assert_array_equal(turned.numpy(), expected)
    assert turned.is_contiguous()  # as the operator promises to torch.compile, whatever NumPy's order is


def test_transformations_of_torch_func():
    """Jacobians in forward and reverse mode, one world after the other and all at once, and Hessians."""
    q, v, tau = (torch.tensor(x) for x in (STATE["q"], STATE["v"], STATE["tau"]))

    def f(q):
        return in_torch("forward_dynamics")(q, v, tau, params=PARAMS)

    def close(found, expected):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-11)

    J = torch.autograd.functional.jacobian(f, q)
    t = torch.linspace(-1, 1, len(q), dtype=q.dtype)
    close(torch.func.jvp(f, (q,), (t,))[1], J @ t)
    close(torch.func.vjp(f, q)[1](v)[0], v @ J)
    close(torch.func.grad(lambda q: f(q).sum())(q), J.sum(0))
    both = torch.stack([q, q])
    for transformed in (torch.func.jacfwd, torch.func.jacrev):
        close(transformed(f)(q), J)
        close(torch.func.vmap(transformed(f))(both)[1], J)
        close(transformed(torch.func.vmap(f))(both)[1, :, 1], J)
    with torch.autograd.forward_ad.dual_level():
        dual = f(torch.autograd.forward_ad.make_dual(q, t))
        close(torch.autograd.forward_ad.unpack_dual(dual).tangent, J @ t)
    H = torch.autograd.functional.hessian(lambda q: f(q).sum(), q)
    close(torch.func.hessian(lambda q: f(q).sum())(q), H)
    close(torch.func.jacrev(torch.func.jacfwd(lambda q: f(q).sum()))(q), H)
    with pytest.raises(TraceError, match=r"jvp and jacfwd are nested around forward_dynamics"):
        torch.func.jacfwd(torch.func.jacfwd(f))(q)


@pytest.mark.filterwarnings("ignore")
def test_traces_contain_the_operator_and_no_values():
    q, v, tau = (torch.tensor(x) for x in (STATE["q"], STATE["v"], STATE["tau"]))

    function = in_torch("forward_dynamics")

    def f(q, v, tau):
        return function(q, v, tau, params=PARAMS)

    make_fx = torch.fx.experimental.proxy_tensor.make_fx
    traces = [
        make_fx(f)(q, v, tau), torch.jit.trace(f, (q, v, tau)), torch.func.functionalize(f),
        make_fx(lambda *x: torch.func.jvp(f, x, x)[0])(q, v, tau),
    ]  # fmt: skip
    for trace in traces:
        torch.testing.assert_close(trace(q, 2 * v, -tau), f(q, 2 * v, -tau), rtol=0, atol=0)


def test_the_gradient_of_a_batch_is_summed_over_what_is_shared():
    q, v = (torch.tensor(cases.state(ARM, (5,))[name]) for name in ("q", "v"))
    tau = torch.tensor(STATE["tau"], requires_grad=True)
    f = in_torch("forward_dynamics")
    f(q, v, tau, params=PARAMS).sum().backward()
    inverses = np.linalg.inv(FAST.mass_matrix(q.numpy(), params=PARAMS))
    np.testing.assert_allclose(tau.grad.numpy(), inverses.sum((0, 1)), rtol=1e-10)


def test_compile_of_the_whole_graph():
    """The loss and its gradient, traced without a break, also for another number of worlds."""
    f = in_torch("forward_dynamics")

    def loss(q, v, tau):
        return f(q, v, tau, params=PARAMS).square().mean() + q.sin().sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for worlds in (3, 4, 7):
        given, same = (arguments("forward_dynamics", cases.state(ARM, (worlds,))) for _ in range(2))
        found, expected = compiled(*given), loss(*same)
        found.backward()
        expected.backward()
        assert torch.equal(found, expected)
        for x, y in zip(given, same, strict=True):
            torch.testing.assert_close(x.grad, y.grad, rtol=1e-12, atol=1e-12)


def test_a_step_with_contacts_passes_gradcheck():
    step = interop.function(zw.compile(cases.falling_ball()).step, step=0.002)
    given = [torch.tensor(x, requires_grad=True) for x in cases.rolling()]
    assert torch.autograd.gradcheck(lambda *x: step(*x)[:2], given, rtol=1e-5, atol=1e-6)
    with pytest.raises(TraceError, match="only the first derivatives are known"):
        torch.autograd.functional.hessian(lambda v: step(given[0], v, given[2])[1].sum(), given[1])


def test_functions_with_loops_have_values_and_an_error_for_derivatives():
    fast = zw.compile(cases.falling_ball())
    q, v, _ = (torch.tensor(x, requires_grad=True) for x in cases.rolling())
    found = interop.function(fast.external_wrenches)(q, v)
    expected = fast.external_wrenches(q.detach().numpy(), v.detach().numpy())
    np.testing.assert_array_equal(found.detach().numpy(), expected)
    with pytest.raises(TraceError, match=r"external_wrenches of mechanism 'ball' cannot be differentiated"):
        found.sum().backward()


IN_A_NEW_PROCESS = """
import torch
import zwang as zw, zwang.interop.torch as interop
from tests.interop.cases import pendulum
from zwang.errors import ArgumentError

x = tuple(torch.tensor([x], dtype=torch.float64) for x in (0.3, 0, 0))
other = interop.function(zw.compile(pendulum(0.1)).forward_dynamics)
print(other(*x).item())
programs = [torch.export.load("p.pt2").module(), torch.jit.load("p.ts")]
programs.append(torch.load("p.fx", weights_only=False))
try:
    programs[0](*x)
except ArgumentError as error:
    print(error)
copied = torch.load("p.function", weights_only=False)
for call in (copied, *programs):
    print(call(*x).item())
"""


@pytest.mark.filterwarnings("ignore")
def test_saved_programs_find_their_function_in_another_process(tmp_path):
    """Of a mechanism with an equal function; the Jacobian, too, which the other process has not asked for."""
    f = interop.function(zw.compile(cases.pendulum(0.5)).forward_dynamics)
    x = tuple(torch.tensor([x], dtype=torch.float64) for x in (0.3, 0, 0))
    module = torch.nn.Module()
    module.forward = lambda q, v, tau: f(q, v, tau)
    torch.export.save(torch.export.export(module, x), tmp_path / "p.pt2")
    torch.jit.save(torch.jit.trace(f, x), str(tmp_path / "p.ts"))
    slope = torch.fx.experimental.proxy_tensor.make_fx(torch.func.jacrev(f))(*x)
    torch.save(slope, tmp_path / "p.fx")
    torch.save(f, tmp_path / "p.function")
    found = subprocess.run(
        [sys.executable, "-c", IN_A_NEW_PROCESS], cwd=tmp_path, capture_output=True, encoding="utf-8",
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(cases.ROOT), *sys.path]), "PYTHONHASHSEED": "7"},
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    other, error, *values = found.stdout.splitlines()
    assert float(other) == pytest.approx(cases.swing(0.1, 0.3), rel=1e-12)
    assert "forward_dynamics of mechanism 'p\\xe9ndulo', which this process has not made: make it" in error
    a = cases.swing(0.5, 0.3)
    expected = [a, a, a, a / np.tan(0.3)]
    np.testing.assert_allclose([float(x) for x in values], expected, rtol=1e-12)


def test_copies_of_modules_share_the_function():
    module = torch.nn.Linear(1, 1)
    module.f = in_torch("energy")
    assert copy.deepcopy(module).f is module.f


def test_wrong_calls_are_explained():
    f = in_torch("forward_dynamics")
    q, v, tau = arguments("forward_dynamics")
    with pytest.raises(StateError, match=r"'v' is float32, and forward_dynamics of .* float64"):
        f(q, v.float(), tau, params=PARAMS)
    with pytest.raises(StateError, match=r"'v' is bfloat16, and .*: convert it by .to\(torch.float64\)$"):
        f(q, v.bfloat16(), tau, params=PARAMS)
    for wrong, kind in ((tau + 0j, "complex128"), (tau > 0, "bool")):
        with pytest.raises(StateError, match=f"'tau' is an array of {kind}"):
            f(q, v, wrong, params=PARAMS)
    with pytest.raises(StateError, match=r"'v' has the layout torch.sparse_coo; convert it by .to_dense\(\)"):
        f(q, v.detach().to_sparse(), tau, params=PARAMS)
    with pytest.raises(
        StateError, match=r"'v' is float32.* convert it by .astype\('float64'\), or .* dtype='float32'\)$"
    ):
        f(q, STATE["v"].astype("float32"), tau, params=PARAMS)
    with pytest.raises(StateError, match=r"'v' is a list of tensors: join them by torch.stack"):
        f(q, list(v), tau, params=PARAMS)
    with pytest.raises(StateError, match=r"'v' is 'fast'; give a tensor of the type torch.float64"):
        f(q, "fast", tau, params=PARAMS)
    with pytest.raises(StateError, match=r"'v' is \['a'\]; give a tensor"):
        f(q, ["a"], tau, params=PARAMS)
    torch.testing.assert_close(f(q, STATE["v"].tolist(), tau, params=PARAMS), f(q, v, tau, params=PARAMS))
    with pytest.raises(StateError, match=r"'q' is on meta, .* computes on the CPU"):
        f(q.to("meta"), v, tau, params=PARAMS)
    with pytest.raises(ShapeError, match=r"'q' has the shape \(5,\)"):
        f(q[:5], v, tau, params=PARAMS)
    with pytest.raises(ShapeError, match="do not broadcast"):
        f(q.expand(2, 6), v.expand(3, 5), tau, params=PARAMS)
    with pytest.raises(ParameterError, match="'payload' has no value"):
        f(q, v, tau)
    with pytest.raises(ArgumentError, match="'tau' is missing"):
        f(q, v, params=PARAMS)
    for call in (
        lambda q: zw.mass_centre(ARM.subs({"payload": 1}), q),
        lambda q: FAST.mass_centre(q, params=PARAMS),
    ):
        with pytest.raises(StateError, match=r"q.* make a function by zwang.interop.torch.function"):
            call(q)
    FAST.mass_centre(STATE["q"], params=PARAMS)
    with pytest.raises(StateError, match=r"q.* make a function"):  # also once it is compiled
        FAST.mass_centre(q, params=PARAMS)


def test_labelled_arrays_are_read_by_their_labels():
    q = xr.DataArray(
        STATE["q"][::-1], dims="coordinate", coords={"coordinate": list(ARM.coordinate_names[::-1])}
    )
    found = in_torch("mass_matrix")(q, params=PARAMS)
    np.testing.assert_array_equal(found, FAST.mass_matrix(STATE["q"], params=PARAMS))


def test_the_page_runs(tmp_path, monkeypatch):
    """The page is built where PyTorch is not installed, so that its code runs here."""
    text = (cases.ROOT / "docs" / "howto" / "use_pytorch.md").read_text("utf-8")
    blocks = re.findall(r"^```\{code-block\} python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks), "use_pytorch.md", "exec"), {"__name__": "__main__"})


def test_without_pytorch_the_error_has_the_command():
    code = cases.run_in_a_new_process_without("torch")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'zwang[torch]'" in done.stdout


def test_completion_lists_the_function_alone():
    assert dir(interop) == ["function"]
