"""The commands of the command line, by module and function, with the examples of their help.

A command's module is imported when the command is called, as each loads other heavy libraries.
"""

from __future__ import annotations

COMMANDS: dict[str, tuple[str, ...]] = {
    "model_commands:info": (
        "zwang info furuta",
        "zwang info robot.urdf --base free",
        "zwang info robot/robot.xml --asset-dirs meshes",
    ),
    "model_commands:check": ("zwang check robot.urdf",),
    "analysis_commands:equations": (
        "zwang equations furuta",
        "zwang equations arm.urdf --symbolic mass --symbolic gravity --format latex",
    ),
    "analysis_commands:linearize": (
        "zwang linearize furuta",
        "zwang linearize furuta --q0 alpha=3.14159 --step 0.01",
        "zwang linearize walker.xml --trim",
        "zwang linearize robot.xml --keyframe home --control elbow=0.5",
    ),
    "analysis_commands:ik": (
        "zwang ik panda.urdf --frame panda_hand --position 0.4 0.1 0.5",
        "zwang ik panda.urdf --frame panda_hand --position 0.4 0.1 0.5 --rpy 3.14 0 0",
        "zwang ik panda.urdf --frame panda_hand --position 0.4 0.1 0.5 --quaternion 0 1 0 0",
    ),
    "run_commands:simulate": (
        "zwang simulate furuta --duration 2 --q0 alpha=0.1 --plot run.png",
        "zwang simulate four_bar --plot zwang.png --kind zwang",
        "zwang simulate robot.urdf --duration 2 --worlds 16 --out run.nc --html run.html",
        "zwang simulate robot.xml --keyframe home --html run.html",
        "zwang simulate four_bar --integrator rk4 --control motor=0.5 --out run.zarr",
    ),
    "run_commands:plot": (
        "zwang plot run.nc",
        "zwang plot run.nc --kind phase --name alpha --out phase.png",
    ),
    "run_commands:view": (
        "zwang view robot.urdf",
        "zwang view run.nc",
        "zwang view robot.urdf --html robot.html",
    ),
    "convert_command:convert": (
        "zwang convert a.urdf b.xml",
        "zwang convert humanoid.xml humanoid.urdf --no-strict",
        "zwang convert furuta furuta.json",
    ),
    "export_command:export": (
        "zwang export furuta furuta_code/",
        "zwang export furuta furuta.fmu --step 0.001",
        "zwang export humanoid.xml humanoid_code --step 0.002 --function step --function sensors",
    ),
    "identify_command:identify": (
        "zwang identify arm.urdf data.csv --report out.html",
        "zwang identify arm.urdf data.csv --cutoff 10 --kind inertia --kind damping --kind friction",
        "zwang identify arm.urdf first.csv second.csv --report out.html",
        "zwang identify arm.urdf data.csv --stribeck joint1 --motor joint2 --no-check-units",
        "zwang identify arm.urdf data.csv --method simulation --report out.html",
        "zwang identify panda.urdf data.csv --fix panda_finger_joint1 --out fitted.urdf",
    ),
    "demo_commands:bench": ("zwang bench panda.urdf --worlds 4096",),
    "demo_commands:demo": (
        "zwang demo",
        "zwang demo here --worlds 20000",
    ),
}
