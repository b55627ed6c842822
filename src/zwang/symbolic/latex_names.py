"""Names as LaTeX."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_ESCAPES = {"\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "_": r"\_", "^": r"\^{}", "&": r"\&",
            "%": r"\%", "$": r"\$", "#": r"\#", "~": r"\~{}", "<": r"\textless{}",
            ">": r"\textgreater{}"}  # fmt: skip
_GREEK = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda",
          "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
          "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Phi", "Psi", "Omega"}  # fmt: skip


def latex_symbol(name: str) -> str:
    """A name as LaTeX: letters and Greek names as symbols, `a_b` with an index, else escaped text."""
    head, *tail = name.split("_")
    if not re.fullmatch(r"[A-Za-z]+\d*", head) or not all(re.fullmatch(r"[A-Za-z0-9,]+", t) for t in tail):
        return rf"\text{{{escaped(name)}}}"
    letters = re.sub(r"\d+$", "", head)
    digits = head[len(letters) :]
    indices = ([digits] if digits else []) + [_token(t) for t in tail]
    index = rf"_{{{', '.join(indices)}}}" if indices else ""
    return _token(letters) + index


def latex_symbols(names: Iterable[str]) -> dict[str, str]:
    """By name the LaTeX of names that occur together, which is different for each.

    It is that of `latex_symbol`, unless several names have the same, as `m1` and `m_1` do; these are text.
    """
    symbols = {name: latex_symbol(name) for name in names}
    counts = Counter(symbols.values())
    return {
        name: latex if counts[latex] == 1 else rf"\text{{{escaped(repr(name)[1:-1])}}}"
        for name, latex in symbols.items()
    }


def _token(token: str) -> str:
    if token in _GREEK:
        return "\\" + token
    return token if len(token) == 1 or token.isdigit() else rf"\mathrm{{{token}}}"


def escaped(text: str) -> str:
    """A text escaped for LaTeX's text mode."""
    return "".join(_ESCAPES.get(c, c) for c in text if c.isprintable())
