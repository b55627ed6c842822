"""Who may know whom: the arrows between rooms, the owners of heavy libraries, no cycles, no hidden imports."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "zwang"

SPINE = {"scalar", "algebra", "mechanism", "kinematics", "gauss", "constraint", "solve", "contact"}
MAY_IMPORT = {
    "errors": set(),
    "scalar": set(),
    "algebra": {"scalar"},
    "mechanism": {"scalar", "algebra"},
    "atomic": set(),
    "read": {"scalar", "mechanism", "algebra"},
    "kinematics": {"scalar", "algebra", "mechanism"},
    "gauss": {"scalar", "algebra", "mechanism", "kinematics"},
    "contact": {"scalar", "algebra", "mechanism", "kinematics"},
    "constraint": {"scalar", "algebra", "mechanism", "kinematics", "gauss", "contact"},
    "solve": {"scalar", "algebra", "gauss.problem", "constraint.rows", "constraint.listed"},
    "integrate": {"scalar", "algebra", "mechanism.joint_kinds"},
    "door": {"mechanism", "scalar"},
    "reference": SPINE | {"door"},
    "simulate": SPINE | {"integrate", "door", "fast", "reference", "atomic"},
    "robot": (SPINE - {"contact"}) | {"door", "fast", "reference"},
    "symbolic": (SPINE - {"contact"})
    | {"compile.graph", "compile.trace", "compile.derive", "door", "reference"},
    "compiler.ir": {"scalar"},
    "compiler.frontend": {"scalar", "compiler.ir"},
    "compiler.passes": {"scalar", "compiler.ir"},
    "compiler.derivatives": {"scalar", "compiler.ir"},
    "compiler.pipeline": {"compiler.ir", "compiler.frontend", "compiler.passes"},
    "compiler.backends": {"compiler.ir", "compiler.passes"},
    "compiler.runtime": {"scalar", "compiler.ir", "compiler.backends"},
    "compiler": set(),
    "fast": SPINE | {"compile", "door", "integrate", "simulate.step"},
    "view": {"mechanism", "kinematics", "simulate.record", "algebra", "door", "scalar", "robot", "atomic"},
    "demo": SPINE | {"simulate", "fast", "view", "symbolic", "door", "reference", "read"},
    "cli": None,
    "cli_options": set(),
    "__main__": {"cli"},
    "__init__": None,
}
"""For each room those that it may import besides itself and `errors`; None means all."""

OWNERS = {
    "sympy": {"symbolic"},
    "llvmlite": {"compiler"},
    "matplotlib": {"view"},
    "mujoco": {"read.mjcf"},
    "xarray": {"simulate", "view", "demo", "cli"},
    "trimesh": {"read"},
    "viser": {"view"},
    "websockets": {"view"},
}


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = list(path.relative_to(SOURCE).with_suffix("").parts)
        if parts[-1] == "__init__" and len(parts) > 1:
            parts.pop()
        found[".".join(parts)] = path
    return found


def imports(path: Path, module: str) -> list[tuple[str, bool]]:
    """Every imported module, and whether the import stands inside a function."""
    tree = ast.parse(path.read_text())
    inside = {
        id(n)
        for f in ast.walk(tree)
        if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef)
        for n in ast.walk(f)
    }
    only_types = {
        id(n)
        for i in ast.walk(tree)
        if isinstance(i, ast.If) and "TYPE_CHECKING" in ast.dump(i.test)
        for n in ast.walk(i)
    }
    found = []
    for node in ast.walk(tree):
        if id(node) in only_types:
            continue
        if isinstance(node, ast.Import):
            found += [(alias.name, id(node) in inside) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [(name, id(node) in inside) for name in names]
    return found


MODULES = modules()


def target_of(name: str) -> str | None:
    """The module of zwang that an import means, or None for another library's."""
    if name != "zwang" and not name.startswith("zwang."):
        return None
    rest = name.removeprefix("zwang").removeprefix(".")
    while rest and rest not in MODULES:
        rest = rest.rpartition(".")[0]
    return rest or "__init__"


@pytest.mark.parametrize("module", MODULES)
def test_a_room_imports_only_what_it_may(module):
    package = ".".join(module.split(".")[:2])
    room = package if package in MAY_IMPORT else module.split(".")[0]
    assert room in MAY_IMPORT, f"{module}: add the room to the table"
    allowed = MAY_IMPORT[room]
    for name, _ in imports(MODULES[module], module):
        target = target_of(name)
        if target is None or allowed is None:
            continue
        names = {target, target.split(".")[0], ".".join(target.split(".")[:2])}
        assert names & (allowed | {room, "errors"}), f"{module} imports {name}, which is against the flow"


@pytest.mark.parametrize("module", MODULES)
def test_heavy_libraries_have_one_owner_and_no_import_hides_in_a_function(module):
    for name, inside in imports(MODULES[module], module):
        assert not inside, f"{module} imports {name} inside a function"
        owners = OWNERS.get(name.split(".")[0])
        if owners is not None:
            assert any(module == o or module.startswith((o + ".", o + "_")) for o in owners), (
                f"{module} imports {name}"
            )


def test_no_import_cycle():
    graph = {
        module: {t for name, _ in imports(path, module) if (t := target_of(name)) not in (None, module)}
        for module, path in MODULES.items()
    }
    state: dict[str, int] = {}

    def visit(module: str, way: tuple[str, ...]) -> None:
        if state.get(module) == 2 or module not in graph:
            return
        assert state.get(module) != 1, " -> ".join([*way, module])
        state[module] = 1
        for target in sorted(graph[module]):
            visit(target, (*way, module))
        state[module] = 2

    for module in graph:
        visit(module, ())
