"""Texts of the library, which name its arguments as in Python, in the options of the command that runs."""

from __future__ import annotations

import ast
import re
import shlex
from contextvars import ContextVar

from cyclopts import App

QUOTED = r"(?:'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")"
NAME = re.compile(rf"({QUOTED}): \.\.\.")
NAMED = re.compile(
    # the remedy of the functions for symbols without values
    r"\b(?P<symbols>(?:give params=|give them with mechanism\.subs\()"
    rf"\{{{NAME.pattern}(?:, {NAME.pattern})*\}}\)?)"
    r"|(?P<kept>"
    r"(?<![\w.])[\w.]+\((?:[^()]|\([^()]*\))*\)"  # a call in Python, whose arguments are no options
    r"|<[^<>\n]*>"  # an element of XML, with its attributes
    rf"|(?<!\w){QUOTED}(?!\w)"  # a name from a file
    r"|(?<![\w-])--[\w-]+ [a-z]\w*=\S*"  # an option with the pair that is given to it
    # an argument that stands alone as a word, as file names and addresses contain parts like arguments
    r")|(?<!\S)(?P<before>[(\[{`]*)(?P<name>[a-z]\w*)=(?P<value>"
    r"(?P<open>\[)?(?P<quote>['\"])(?P<text>(?:(?!(?P=quote))[^\\\n])*)(?P=quote)(?(open)\])"
    r"|\.\.\.|-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|[A-Za-z]\w*"
    r")?(?=[)\]}`,;:.!?]*(?:\s|$))"
)
"""An argument as in Python, such as strict=False, with its value if it has one; a remedy for symbols; or a
text that is kept."""

_options: ContextVar[frozenset[str]] = ContextVar("options", default=frozenset())


def use_options_of_command(command: App | None) -> None:
    """Let `in_options` name the options of the command that runs."""
    known = () if command is None else command.assemble_argument_collection()
    _options.set(frozenset(name for argument in known for name in argument.names))


def in_options(text: str) -> str:
    """The text with the arguments that it names, such as strict=False, as options of the command that runs,
    such as --no-strict.

    Arguments for which the command has no option are kept, as are those in calls, names in quotes, and parts
    of longer words, such as names of files.
    """
    return NAMED.sub(_renamed, text)  # in one pass: the names in an option are no arguments again


def _renamed(found: re.Match[str]) -> str:
    """The options for an argument or for the values of symbols, or the text itself if it has none."""
    if found["symbols"]:
        return _param_options(found[0]) if "--param" in _options.get() else found[0]
    return found[0] if found["kept"] else found["before"] + _option(found)


def _option(found: re.Match[str]) -> str:
    """The option for an argument, or the argument itself if the command has none."""
    argument = found[0].removeprefix(found["before"])
    if (found["name"], found["text"]) == ("loss", "huber") and "--robust" in _options.get():
        return "--robust"
    dashed, value = found["name"].replace("_", "-"), found["value"]
    names = (f"--{dashed}", f"--{dashed.removesuffix('s')}")  # one that may be given several times: params=
    option = next((name for name in names if name in _options.get()), None)
    negative = f"--no-{dashed}"
    if value == "False" and negative in _options.get():
        return negative
    if option is None or value in ("False", "None"):
        return argument
    if value is None or value == "True":
        return option
    return f"{option} {value if found['text'] is None else shlex.quote(found['text'])}"


def _param_options(remedy: str) -> str:
    """The options that give the values of symbols, as a shell reads them."""
    names = [shlex.quote(ast.literal_eval(name[1])) for name in NAME.finditer(remedy)]
    return "give " + " ".join(f"--param {name}=..." for name in names)
