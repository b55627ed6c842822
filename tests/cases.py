"""The reference cases of tests/cases as dictionaries: published figures, closed forms and oracles' numbers.

Models by others are not stored there. Their cases name the package, the file and its checksum, and the text
comes from the installed package.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).with_name("cases")
TIGHT = {
    "solver": "Newton",
    "iterations": "1000",
    "tolerance": "1e-14",
    "ls_iterations": "500",
    "ls_tolerance": "1e-9",
    "jacobian": "dense",
}


@cache
def case(folder: str, name: str) -> dict[str, Any]:
    """The case `name` (without ending) of a folder of tests/cases.

    Where a model belongs to it, its text is in parameters["xml"] (MJCF) or parameters["urdf"].
    Raises LookupError for a model's package that is not installed or has another version of the model.
    """
    found = stored(folder, name)
    model = found["parameters"].get("model")
    if isinstance(model, dict):  # a file; cases with a formula for a model describe it in words
        read = mjcf if model["file"].endswith(".xml") else urdf
        found["parameters"]["xml" if read is mjcf else "urdf"] = read(model_file(model, FOLDER / folder))
    return found


def stored(folder: str, name: str) -> dict[str, Any]:
    """The case as its file has it."""
    plain = FOLDER / folder / f"{name}.json"
    if plain.exists():
        return json.loads(plain.read_text(encoding="utf-8"))
    with gzip.open(plain.with_suffix(".json.gz"), "rt", encoding="utf-8") as file:
        return json.load(file)


def references(folder: str, name: str) -> list[Any]:
    """The references of a case, to parametrize a test by."""
    return case(folder, name)["reference"]


def model_file(model: dict[str, str], folder: Path) -> Path:
    """The file of a model: in this folder ("file"), or in a package ("package", "file", "sha256")."""
    if "package" not in model:
        return folder / model["file"]
    package, file = model["package"], model["file"]
    if package == "example-robot-data" and sys.platform == "win32":
        pytest.skip("example-robot-data has no wheel for Windows")
    try:
        files = metadata.files(package) or ()
    except metadata.PackageNotFoundError as error:
        raise LookupError(f"the package {package} is missing: pip install '.[test]'") from error
    for path in files:
        if path.as_posix().endswith(file):
            found = Path(str(path.locate()))
            break
    else:
        raise LookupError(f"{package} {metadata.version(package)} has no file {file}")
    if checksum(found) != model["sha256"]:
        raise LookupError(
            f"{file} of {package} {metadata.version(package)} is not the model of the stored figures, which "
            f"are of {package} {model['version']}: install that version"
        )
    return found


def checksum(path: Path) -> str:
    """SHA-256 of a text file, whatever its line endings."""
    return hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()


def mjcf(path: Path) -> str:
    """The MJCF of a file without includes, with the solver options of the reference figures of MuJoCo."""
    root = ElementTree.parse(path).getroot()
    options = root.find("option")
    if options is None:
        options = ElementTree.Element("option")
        root.insert(0, options)
    options.attrib.update(TIGHT)
    return ElementTree.tostring(root, encoding="unicode")


def urdf(path: Path) -> str:
    """The links and joints of a URDF file, without shapes: what its dynamics depend on."""
    root = ElementTree.parse(path).getroot()
    for part in list(root):
        if part.tag not in ("link", "joint"):
            root.remove(part)
    for part in root:
        for shape in [*part.findall("visual"), *part.findall("collision")]:
            part.remove(shape)
    return ElementTree.tostring(root, encoding="unicode")
