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
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
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


def setup(app):
    app.connect("autodoc-process-docstring", _plain_text)
    app.set_html_assets_policy("always")  # formulas in cells' outputs want MathJax, too
    app.connect("build-finished", _beside_the_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _plain_text(app, what, name, obj, options, lines):
    """Docstrings are plain text: what reStructuredText would read as markup is escaped, names in backticks are code."""
    text = [re.sub(r"([*|\\]|(?<=\w)_(?!\w))", r"\\\1", line) for line in lines]
    lines[:] = [re.sub(r"`([^`]+)`", r"``\1``", line) for line in text]


def _beside_the_pages(app, exception):
    if exception is None and app.builder.format == "html":
        shutil.copy(_MATHJAX, Path(app.outdir) / "_static" / mathjax_path)
