"""Configuration of the site: `sphinx-build -W -j auto docs build/site` executes all code cells of all pages.

The build fails if a cell raises an error or writes a warning. To build single pages while writing them, use
`sphinx-build -q -D include_patterns=index.md,gauss.md docs /tmp/one` (paths relative to docs/, separated by
commas; there are warnings about the pages that are left out), and open `/tmp/one/gauss.html`.
`pytest -n 0 tests/test_docs_run.py -k gauss` executes the cells of a page in one process, without output.

A page with cells begins with the same front matter as the existing pages. A cell is fenced as
{code-cell} python, and may begin with `:tags: [remove-input]` (hides the code), `[remove-output]`,
`[hide-input]` (folds the code) or `[raises-exception]` (must raise an error). Formulas stand between dollars.
Cells are executed in a temporary folder; the checkout is os.environ["ZWANG_ROOT"]. New pages in docs/learn,
howto, theory, equations and robot are included automatically.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from numpy.typing import ArrayLike
from sphinx.util.typing import stringify_annotation

from zwang import __version__

project, author, release = "zwang", "The zwang developers", __version__
copyright = author
sys.path.insert(0, str(Path(__file__).parent))
extensions = ["local_kernels", "myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
exclude_patterns = ["_build", "README.md"]

os.environ["PATH"] = (
    f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # for the command `zwang`
)
os.environ["ZWANG_ROOT"] = str(Path(__file__).parents[1])  # for examples/

# every code cell runs, at every build; one that raises, or that writes a warning, fails it with -W. As an
# exception it would end a process of a parallel build without naming the cell
nb_execution_mode = "force"
nb_execution_raise_on_error = False
nb_execution_timeout = 300
nb_execution_in_temp = True
nb_execution_show_tb = True
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
myst_mathjax_classes = "tex2jax_process|mathjax_process|math|text_html"  # the last: what cells give

html_theme = "furo"
html_title = "zwang"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"footer_icons": [], "navigation_with_keys": True}
html_show_sphinx = False
html_copy_source = False

# formulas are drawn without a network: MathJax lies beside the pages
_MATHJAX = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax" / "tex-svg-full.js"
mathjax_path = "mathjax.js"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 70
default_role = "literal"
smartquotes = False


def setup(app):
    app.connect("autodoc-process-docstring", _plain_text)
    app.connect("autodoc-process-signature", _short_signature)
    app.set_html_assets_policy("always")  # formulas in cells' outputs want MathJax, too
    app.connect("build-finished", _beside_the_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


EMPTY = inspect.Parameter.empty
SHAPE = r" \((?:[^():]|\([^():]*\))*\)(?: or \([^():]*\))?| \[[^\[\]:]*\]"  # of an array, or a unit
NAME = rf"[A-Za-z]\w*(?:{SHAPE})*"
ARGUMENTS = re.compile(rf"(?:^|(?<=\. )|(?<=\n))({NAME}(?:, {NAME})*): ")
SENTENCES = re.compile(r"\n(?=(?:Raises|Returns|Warns|Source:) )")
MARKUP = re.compile(r"([*\\|]|(?<=\w)_(?!\w))")


def _plain_text(app, what, name, obj, options, lines):
    """Docstrings are plain text: text in backticks is code, and other markup of reStructuredText is escaped.

    The arguments of a function and the fields of a class become a list, one item for each, with the default
    value from the signature where the text does not mention it.
    """
    defaults = _parameters(obj)
    paragraphs = "\n".join(line.strip() for line in lines).strip().split("\n\n")
    paragraphs = [part for text in paragraphs for part in SENTENCES.split(text)]
    parts = re.split(r"`([^`]+)`", "\n\n".join(_with_arguments_apart(text, defaults) for text in paragraphs))
    parts[0::2] = [MARKUP.sub(r"\\\1", text) for text in parts[0::2]]
    parts[1::2] = [rf"\ ``{' '.join(code.split())}``\ " for code in parts[1::2]]
    lines[:] = [*"".join(parts).split("\n"), ""]


def _short_signature(app, what, name, obj, options, signature, return_annotation):
    """The signature with NumPy's ArrayLike instead of the types of which it is the union."""
    union = stringify_annotation(ArrayLike, "smart")
    return signature and signature.replace(union, "ArrayLike"), return_annotation


def _parameters(obj):
    """The parameters of a function, or the fields and properties of a class, each with its default value."""
    names = dict.fromkeys((name for name in dir(obj) if inspect.isclass(obj) and name[0] != "_"), EMPTY)
    with contextlib.suppress(TypeError, ValueError):
        names |= {name: value.default for name, value in inspect.signature(obj).parameters.items()}
    return names


def _with_arguments_apart(text, defaults):
    """A paragraph; if it describes arguments, they follow it as a list."""
    found = [
        match
        for match in ARGUMENTS.finditer(text)
        if all(name in defaults for name in re.sub(SHAPE, "", match[1]).split(", "))
    ]
    if not found:
        return text
    ends = [*(match.start() for match in found[1:]), len(text)]
    items = [
        _item(match[1], " ".join(text[match.end() : end].split()), defaults)
        for match, end in zip(found, ends, strict=True)
    ]
    return "\n\n".join(part for part in (text[: found[0].start()].strip(), "\n".join(items)) if part)


def _item(names, text, defaults):
    """An item of the list: names with shapes and units, the text, and the default value."""
    spelled = re.sub(rf"({SHAPE})|(\w+)", lambda part: part[1] or f"`{part[2]}`", names)
    default = defaults.get(names, EMPTY)
    if isinstance(default, bool | int | float | str) and default != "" and "default" not in text.lower():
        text = f"{text.rstrip('.')}. Default: `{default!r}`."
    return f"- {spelled}: {text}"


def _beside_the_pages(app, exception):
    if exception is None and app.builder.format == "html":
        shutil.copy(_MATHJAX, Path(app.outdir) / "_static" / mathjax_path)
