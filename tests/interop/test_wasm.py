"""Exported WebAssembly modules, run by node, give the bits of zwang's own functions."""

import json
import subprocess

import numpy as np
import pytest

import zwang as zw
from tests.interop.exported_models import MODELS, PARAMS, servo, symbolic_furuta
from zwang.errors import MissingExtraError
from zwang.interop import wasm

pytest.importorskip("ziglang")

SCRIPT = """
import fs from "node:fs";
import {{ load }} from "./model.mjs";
const bytes = fs.readFileSync("model.wasm");
const imports = WebAssembly.Module.imports(new WebAssembly.Module(bytes));
const world = await load(bytes);
const hex = (x) => [...new BigUint64Array(new Float64Array(x).buffer)].map((n) => n.toString(16));
{body}
"""


def run(folder, body):
    """The JSON that a script prints."""
    (folder / "script.mjs").write_text(SCRIPT.format(body=body))
    done = subprocess.run(["node", "script.mjs"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def bits(texts):
    return np.array([int(text, 16) for text in texts], np.uint64).view(float)


@pytest.mark.needs("node")
@pytest.mark.parametrize("model", ["furuta", "symbols", "soft contact", "arm"])
def test_steps_are_those_of_simulate(model, tmp_path):
    m, params = MODELS[model](), PARAMS.get(model)
    zw.export(m, tmp_path / "model.wasm", functions=["step"], params=params)
    inputs = m.inputs or m.speed_names
    u = np.linspace(0.2, 0.4, len(inputs))
    found = run(
        tmp_path,
        f"""world.control.set({u.tolist()});
        const status = world.step(150);
        const state = [...world.q, ...world.v];
        console.log(JSON.stringify({{imports, status, text: world.statusText, time: world.time,
                                     state: hex(state)}}));""",
    )
    reference = zw.simulate(m, duration=150 * 0.002, control=u, params=params)
    expected = np.concatenate([reference.q.values[0, -1], reference.v.values[0, -1]])
    np.testing.assert_array_equal(bits(found["state"]), expected)
    assert found["imports"] == [] and found["status"] == 0 and found["text"] == "the state is valid"
    assert found["time"] == 150 * 0.002


@pytest.mark.needs("node")
def test_functions_and_parameters(tmp_path):
    m = symbolic_furuta()
    zw.export(m, tmp_path / "model.wasm", functions=["forward_dynamics", "frame_pose"], params={"m_p": 0.03})
    q, v, tau = np.random.default_rng(0).normal(size=(3, 2))
    found = run(
        tmp_path,
        f"""const {{ a }} = world.call("forward_dynamics", ...{np.array([q, v, tau]).tolist()}, [0.04]);
        const {{ R, p }} = world.call("frame_pose_pendulum", {q.tolist()}, [0.04]);
        const wrong = [["forward_dynamics", [1], world.v, world.v, [1]], ["frame_pose_pendulum", world.q]];
        const errors = [...wrong, ["f"]]
            .map((given) => {{ try {{ world.call(...given); }} catch (e) {{ return e.message; }} }});
        const initial = [...world.parameters];
        world.q.set([0.1, 0.2]);
        world.parameters[0] = 0.05;
        world.step();
        const after = hex(world.q);
        world.control[0] = NaN;
        const status = world.step();
        const text = world.statusText;
        world.reset();
        const cleared = [...world.q, ...world.control, ...world.parameters];
        console.log(JSON.stringify({{a: hex(a), R: hex(R), p: hex(p), errors, initial, after, status, text,
                                     cleared}}));""",
    )
    fast, params = zw.compile(m), {"m_p": 0.04}
    np.testing.assert_array_equal(bits(found["a"]), fast.forward_dynamics(q, v, tau, params=params))
    pose = fast.frame_pose(q, "pendulum", params=params)
    np.testing.assert_array_equal(bits(found["R"]).reshape(3, 3), pose.R)
    np.testing.assert_array_equal(bits(found["p"]), pose.p)
    assert found["errors"] == [
        "forward_dynamics: q needs 2 numbers",
        "frame_pose_pendulum takes q,parameters, not 1 arrays",
        "there is no function f; there are forward_dynamics,frame_pose_arm,frame_pose_pendulum",
    ]
    assert found["initial"] == [0.03]
    after = fast.step([0.1, 0.2], [0, 0], [0], params={"m_p": 0.05})
    np.testing.assert_array_equal(bits(found["after"]), after.q)
    assert found["status"] == 7 and "control is not a finite number" in found["text"]
    assert found["cleared"] == [0, 0, 0, 0.03]


@pytest.mark.needs("node")
def test_a_keyframe_also_gives_the_control(tmp_path):
    m = servo()
    zw.export(m, tmp_path / "model.wasm", functions=["step"], q0="up")
    found = run(
        tmp_path,
        """const ends = [0, 1].map(() => {
            const control = world.control[0];
            world.step(50);
            const end = hex(world.q);
            world.control[0] = 0.1;
            world.reset();
            return { control, end };
        });
        console.log(JSON.stringify(ends));""",
    )
    end = zw.simulate(m, "up", duration=0.1, progress=False).q.values[0, -1]
    assert [x["control"] for x in found] == [0.7, 0.7]
    for x in found:
        np.testing.assert_array_equal(bits(x["end"]), end)


def test_names_cannot_leave_the_script(tmp_path):
    evil = '</script>`${x}"\u2028'
    body = zw.Body(evil, joint=zw.Revolute(evil + "1", axis=(0, 1, 0)), mass=1.0, com=(0, 0, -1))
    zw.export(zw.Mechanism(evil, [body]), tmp_path / "a\u2028b.wasm", functions=["step"])
    text = (tmp_path / "a\u2028b.mjs").read_bytes().decode("ascii")
    assert "</script" not in text and "a_b.wasm" in text
    layout = text[text.index("{\n") : text.index("};\n") + 1]
    assert json.loads(layout)["q"] == [evil + "1"]


def test_without_a_compiler_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(wasm, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="pip install 'zwang"):
        zw.export(MODELS["furuta"](), tmp_path / "a.wasm")
