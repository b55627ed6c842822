"""The layers of the package: which package may import which, no cycles, owners of heavy libraries, no hidden
imports.
"""

from __future__ import annotations

import ast
import functools
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "zwang"

BASE = {"errors", "deprecation", "lazy_imports"}
MODEL = {"scalar", "algebra", "mechanism", "kinematics", "dynamics"}
MECHANICS = MODEL | {"collision", "constraint", "solver", "integrator"}
ARGUMENTS = {"api.arguments", "api.functions"}

MAY_IMPORT = {
    "lazy_imports": set(),
    "deprecation": {"lazy_imports"},
    "errors": {"deprecation"},
    "atomic": set(),
    "scalar": set(),
    "algebra": {"scalar"},
    "mechanism": {"scalar", "algebra"},
    "io": {"scalar", "mechanism", "algebra", "atomic"},
    "kinematics": {"scalar", "algebra", "mechanism"},
    "collision": {"scalar", "algebra", "mechanism", "kinematics"},
    "dynamics": {"scalar", "algebra", "mechanism", "kinematics", "collision"},
    "constraint": MODEL | {"collision"},
    "solver": {"scalar", "algebra", "dynamics", "constraint"},
    "integrator": {"scalar", "algebra", "mechanism"},
    "simulation": MECHANICS,
    "recording": {"mechanism", "simulation", "atomic", "algebra", "kinematics"},
    "compiler": set(),
    "compiler.ir": {"scalar"},
    "compiler.frontend": {"scalar", "compiler.ir"},
    "compiler.passes": {"scalar", "compiler.ir"},
    "compiler.derivatives": {"scalar", "compiler.ir"},
    "compiler.pipeline": {"compiler.ir", "compiler.frontend", "compiler.passes"},
    "compiler.backends": {"scalar", "compiler.ir", "compiler.passes"},
    "compiler.runtime": {"scalar", "compiler.ir", "compiler.backends"},
    "api": set(),
    "api.arguments": MECHANICS | {"simulation"},
    "api.functions": MECHANICS | {"simulation", "api.arguments"},
    "api.derivatives": MECHANICS | {"simulation", "compiler", "api.arguments"},
    "api.compilation": MECHANICS | {"simulation", "compiler", *ARGUMENTS, "api.derivatives"},
    "api.analysis": MECHANICS | {"simulation", "compiler", *ARGUMENTS, "api.derivatives", "api.compilation"},
    "api.runs": MECHANICS | {"simulation", "recording", "compiler", *ARGUMENTS, "api.compilation"},
    "api.batch": MECHANICS
    | {"simulation", "compiler", *ARGUMENTS, "api.compilation", "api.analysis", "api.runs"},
    "robot": MODEL | {"collision", "constraint", "solver", "api"},
    "control": {"kinematics", "api"},
    "identification": MODEL | {"constraint", "simulation", "api", "compiler", "atomic"},
    "symbolic": MODEL | {"constraint", "simulation", "compiler", "api"},
    "interop": MECHANICS | {"simulation", "recording", "compiler", "api", "atomic", "io"},
    "viewer": MODEL | {"recording", "api", "robot", "atomic", "simulation", "interop"},
    "gym": MODEL | {"io", "simulation", "api", "viewer"},
    "demo": MODEL | {"api", "recording", "symbolic", "viewer"},
    "cli": None,
    "__main__": {"cli"},
    "__init__": None,
}
"""For each package those that it may import beside itself and `BASE`; None for all.

The order is that of the layers.
"""

OWNERS = {
    "sympy": {"symbolic"},
    "llvmlite": {"compiler"},
    "matplotlib": {"viewer"},
    "mujoco": {"io.mjcf"},
    "xarray": {"api", "recording", "viewer", "demo", "cli"},
    "trimesh": {"io"},
    "viser": {"viewer"},
    "websockets": {"viewer"},
    "gymnasium": {"gym"},
    "jax": {"interop"},
    "torch": {"interop"},
    "casadi": {"interop"},
}
"""The packages that may import a heavy library."""

LAZY = {
    "__init__", "api.analysis.linearize", "cli", "cli.demo_commands", "deprecation", "gym.rendering",
    "identification.lmi_fit", "interop.torch", "io.load", "lazy_imports", "recording.mcap_export",
    "symbolic.linearization", "viewer.html_page", "viewer.page.live",
}  # fmt: skip
"""The modules that load others by `import_module`: public names, renamed names, optional or heavy
libraries.
"""


def module_paths() -> dict[str, Path]:
    """The path of each module, by its name without "zwang."."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = list(path.relative_to(SOURCE).with_suffix("").parts)
        if parts[-1] == "__init__" and len(parts) > 1:
            parts.pop()
        found[".".join(parts)] = path
    return found


MODULES = module_paths()


def loads_by_name(node: ast.AST) -> bool:
    """Whether a node is a call of import_module or __import__."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("import_module", "__import__")


@functools.cache
def imports_and_calls(path: Path) -> list[tuple[ast.Import | ast.ImportFrom | ast.Call, bool]]:
    """The nodes of a module's syntax tree that may load others, and whether each is inside a function."""
    found, todo = [], [(ast.parse(path.read_text("utf-8")), False)]
    for node, inside in todo:  # which grows
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Call):
            found.append((node, inside))
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        todo += [(child, inside) for child in ast.iter_child_nodes(node)]
    return found


@functools.cache
def imports(path: Path) -> list[tuple[str, bool]]:
    """Every imported module, and whether the import is inside a function.

    Imports for type checkers alone, and those by `import_module` of a constant name, are included.
    """
    found = []
    for node, inside in imports_and_calls(path):
        if isinstance(node, ast.Import):
            found += [(alias.name, inside) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            found += [(f"{node.module}.{alias.name}", inside) for alias in node.names]
        elif loads_by_name(node) and isinstance(node.args[0], ast.Constant):
            found.append((str(node.args[0].value), False))
    return found


def target_of(name: str) -> str | None:
    """The module of zwang that an import denotes, or None for another library."""
    if name != "zwang" and not name.startswith("zwang."):
        return None
    rest = name.removeprefix("zwang").removeprefix(".")
    while rest and rest not in MODULES:
        rest = rest.rpartition(".")[0]
    return rest or "__init__"


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    """The nodes of one cycle of a directed graph, or nothing."""
    done: set[str] = set()

    def visit(node: str, path: tuple[str, ...]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in done:
            return []
        for target in sorted(graph.get(node, ())):
            if cycle := visit(target, (*path, node)):
                return cycle
        done.add(node)
        return []

    for node in graph:
        if cycle := visit(node, ()):
            return cycle
    return []


def module_graph() -> dict[str, set[str]]:
    """For each module those that it imports; the lazy names of the public module are left out."""
    graph = {
        module: {t for name, _ in imports(path) if (t := target_of(name)) not in (None, module)}
        for module, path in MODULES.items()
    }
    return {module: targets for module, targets in graph.items() if module != "__init__"}


def allowed_packages(module: str) -> set[str] | None:
    """The packages that a module may import, with its own; None for any."""
    package = ".".join(module.split(".")[:2])
    package = package if package in MAY_IMPORT else module.split(".")[0]
    assert package in MAY_IMPORT, f"{module}: add the package to the table"
    allowed = MAY_IMPORT[package]
    return None if allowed is None else allowed | {package} | BASE


def test_a_package_imports_only_lower_layers():
    wrong = []
    for module, path in MODULES.items():
        allowed = allowed_packages(module)
        for name, _ in imports(path):
            target = target_of(name)
            if allowed is not None and target is not None:
                if not {".".join(target.split(".")[:n]) for n in (1, 2)} & allowed:
                    wrong.append(f"{module} imports {name}")
    assert not wrong


def test_a_heavy_library_has_owners_and_imports_are_at_the_top():
    for module, path in MODULES.items():
        for name, inside in imports(path):
            assert not inside, f"{module} imports {name} inside a function"
            owners = OWNERS.get(name.split(".")[0])
            if owners is not None and not (module == "__init__" and name.startswith("xarray")):
                assert any(module == o or module.startswith((o + ".", o + "_")) for o in owners), (
                    f"{module} imports {name}"
                )


def test_modules_are_loaded_by_name_only_where_listed():
    calling = {
        module
        for module, path in MODULES.items()
        if any(loads_by_name(node) for node, _ in imports_and_calls(path))
    }
    assert not calling - LAZY, "these modules call import_module"


def test_no_cycle_between_modules():
    assert not cycle_in(module_graph())


def test_no_cycle_between_packages():
    packages: dict[str, set[str]] = {}
    for module, targets in module_graph().items():
        package = module.split(".")[0]
        packages.setdefault(package, set()).update(
            p for t in targets if (p := t.split(".")[0]) not in (package, "__init__")
        )
    assert not cycle_in(packages)


def test_the_table_is_in_the_order_of_the_layers():
    order = list(MAY_IMPORT)
    for package, allowed in MAY_IMPORT.items():
        later = [p for p in allowed or () if order.index(p) > order.index(package)]
        assert not later, f"{package} is above {later}"
