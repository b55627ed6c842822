"""Well-known models, simulated from the command line by compiled code, fall as in MuJoCo: contacts, limits,
every integrator.
"""

from pathlib import Path

import mujoco
import numpy as np
import pytest

import zwang as zw
from tests.cases import case
from zwang.cli import app

WALKER = Path(__file__).parents[2] / "examples" / "models" / "walker2d.xml"
RUNS = {
    "hopper": ("rk4", 300),
    "half_cheetah": ("euler", 100),
    "walker2d": ("euler", 400),
    "ant": ("euler", 100),
    "humanoid": ("euler", 150),
}


def text_of(name):
    return WALKER.read_text() if name == "walker2d" else case("mujoco_oracle", name)["parameters"]["xml"]


def by_mujoco(text, integrator, steps, q0, v0):
    """q after every step, and the largest number of contacts."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.integrator = {"euler": mujoco.mjtIntegrator.mjINT_EULER, "rk4": mujoco.mjtIntegrator.mjINT_RK4}[
        integrator
    ]
    model.opt.tolerance, model.opt.ls_tolerance, model.opt.iterations = 1e-14, 1e-9, 1000
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q0, v0
    places, contacts = [], 0
    for _ in range(steps):
        mujoco.mj_step(model, data)
        places.append(data.qpos.copy())
        contacts = max(contacts, data.ncon)
    return np.array(places), contacts


@pytest.mark.parametrize("name", RUNS)
def test_models_with_contacts_fall_from_the_command_line_as_in_mujoco(name, tmp_path, capsys):
    integrator, steps = RUNS[name]
    text = text_of(name)
    file, out = tmp_path / f"{name}.xml", tmp_path / "run.nc"
    file.write_text(text)
    step = zw.load(file, strict=False).options.timestep
    app(
        [
            "simulate",
            str(file),
            "--no-strict",
            "--duration",
            str(steps * step),
            "--integrator",
            integrator,
            "--worlds",
            "2",
            "--spread",
            "0.02",
            "--out",
            str(out),
        ],
        result_action="return_value",
    )
    assert "compiled" in capsys.readouterr().out
    run = zw.open_run(out)
    assert run.attrs["path"] == "compiled" and not run.status.values.any()
    for w in range(2):
        q, contacts = by_mujoco(text, integrator, steps, run.q.values[w, 0], run.v.values[w, 0])
        assert contacts > 0
        np.testing.assert_allclose(run.q.values[w, 1:], q, atol=1e-5)
