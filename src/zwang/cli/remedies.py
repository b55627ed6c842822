"""Texts of the library, which name its arguments as in Python, in the options of the command that runs."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Sequence
from contextvars import ContextVar

from cyclopts import App

NAME = re.compile(r"('.+?'|\".+?\"): \.\.\.")
VALUES_OF_SYMBOLS = re.compile(
    rf"(give params=|give them with mechanism\.subs\()\{{{NAME.pattern}(, {NAME.pattern})*\}}\)?"
)
"""The remedies of the functions for symbols without values."""
ROBUST = re.compile(r"\bloss=[\"']huber[\"']")
ARGUMENTS = re.compile(
    r"(?P<kept>"
    r"[\w.]+\((?:[^()]|\([^()]*\))*\)"  # a call in Python, whose arguments are no options
    r"|<[^<>\n]*>"  # an element of XML, with its attributes
    r"|(?<!\w)'(?:[^'\\\n]|\\.)*'(?!\w)|(?<!\w)\"(?:[^\"\\\n]|\\.)*\"(?!\w)"  # a name from a file
    r")|(?<![\w.])(?P<name>[a-z]\w*)=(?:"
    r"(?P<value>\[?(?P<quote>['\"])(?P<text>.*?)(?P=quote)\]?|\.\.\.|-?\d+(?:\.\d+)?(?:e-?\d+)?|[A-Za-z]\w*)"
    r"(?![\w(\[]|\.\w)"
    r"|(?=[\s,;:.)]|$))"
)
"""An argument as in Python, such as strict=False, with its value if it has one; or a text that is kept."""

_options: ContextVar[frozenset[str]] = ContextVar("options", default=frozenset())


def use_options_of_command(app: App, arguments: Sequence[str] | None) -> None:
    """Let `in_options` name the options of the command that the arguments of the process call."""
    names, _, _ = app.parse_commands(arguments)
    is_command = bool(names) and not names[0].startswith("-")  # as --version does
    known = app[names[0]].assemble_argument_collection() if is_command else ()
    _options.set(frozenset(name for argument in known for name in argument.names))


def in_options(text: str) -> str:
    """The text with the arguments that it names, such as strict=False, as options of the command that runs,
    such as --no-strict.

    Arguments for which the command has no option are kept, as are those in calls, and names in quotes.
    """
    if "--param" in _options.get():
        text = VALUES_OF_SYMBOLS.sub(_param_options, text)
    if "--robust" in _options.get():
        text = ROBUST.sub("--robust", text)
    return ARGUMENTS.sub(_option, text)


def _option(found: re.Match[str]) -> str:
    """The option for an argument, or the argument itself if the command has none."""
    if found["kept"]:
        return found[0]
    dashed, value = found["name"].replace("_", "-"), found["value"]
    names = (f"--{dashed}", f"--{dashed.removesuffix('s')}")  # one that may be given several times: params=
    option = next((name for name in names if name in _options.get()), None)
    negative = f"--no-{dashed}"
    if value == "False" and negative in _options.get():
        return negative
    if option is None or value in ("False", "None"):
        return found[0]
    if value is None or value == "True":
        return option
    return f"{option} {value if found['text'] is None else shlex.quote(found['text'])}"


def _param_options(remedy: re.Match[str]) -> str:
    """The options that give the values of symbols, as a shell reads them."""
    names = [shlex.quote(ast.literal_eval(name[1])) for name in NAME.finditer(remedy[0])]
    return "give " + " ".join(f"--param {name}=..." for name in names)
