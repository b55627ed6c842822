"""How the site is built: `sphinx-build -W docs build/site` runs every code cell of every page, and fails where one raises.

While writing pages, these alone, quickly: `sphinx-build -q -D include_patterns=index.md,gauss.md docs /tmp/one`
(paths as in docs/, with commas; it complains of the pages that are left out), then look at `/tmp/one/gauss.html`.
Cells also run by `pytest -n 0 tests/test_docs_run.py -k gauss`, in one process, without pictures of them.
A page begins with the front matter of those that are here; a cell is fenced as {code-cell} python, may begin with
`:tags: [remove-input]` (hides code), `[remove-output]`, `[hide-input]` (folds it) or `[raises-exception]` (must raise);
formulas stand between dollars. Cells run in a folder of their own; the checkout is os.environ["ZWANG_ROOT"]. A page in docs/learn, howto, theory, equations or robot is found by itself.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from zwang import __version__

project, author, release = "zwang", "The zwang developers", __version__
copyright = author
sys.path.insert(0, str(Path(__file__).parent))
extensions = ["local_kernels", "myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
exclude_patterns = ["_build", "README.md"]

os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # cells find `zwang`
os.environ["ZWANG_ROOT"] = str(Path(__file__).parents[1])  # and examples/

# every code cell runs, at every build; one that raises, or that writes a warning, fails it
nb_execution_mode = "force"
nb_execution_raise_on_error = True
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
    app.set_html_assets_policy("always")  # formulas in cells' outputs want MathJax, too
    app.connect("build-finished", _beside_the_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


ARGUMENT = re.compile(r"[A-Za-z]\w*(, \w+)*( \([^:]*\))?( \[[^:]*\])?: |Raises |Warns |Source: ")
MARKUP = re.compile(r"([*\\]|(?<!^)\||(?<=\w)_(?!\w))", re.MULTILINE)


def _plain_text(app, what, name, obj, options, lines):
    """Docstrings are plain text: what stands in backticks is code, all else that reStructuredText knows is escaped."""
    paragraphs = "\n".join(lines).strip().split("\n\n")
    parts = re.split(
        r"`([^`]+)`", "\n\n".join(_with_arguments_apart(text.split("\n")) for text in paragraphs)
    )
    parts[0::2] = [MARKUP.sub(r"\\\1", text) for text in parts[0::2]]
    parts[1::2] = [rf"\ ``{' '.join(code.split())}``\ " for code in parts[1::2]]
    lines[:] = [*"".join(parts).split("\n"), ""]


def _with_arguments_apart(lines):
    """A paragraph; where it tells of arguments, as a block in which each begins a line."""
    lines = [line.strip() for line in lines]
    begins = [bool(ARGUMENT.match(line)) or k == 0 for k, line in enumerate(lines)]
    if any(ARGUMENT.match(line) for line in lines):
        lines = [("| " if first else "  ") + line for first, line in zip(begins, lines, strict=True)]
    return "\n".join(lines)


def _beside_the_pages(app, exception):
    if exception is None and app.builder.format == "html":
        shutil.copy(_MATHJAX, Path(app.outdir) / "_static" / mathjax_path)
