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
DERIVATION = re.compile(r"[urBMDKPX]|X_\{0\}|\\Gamma|(r|Q|\\lambda)_\{\d+\}|M_\{\d+,\d+\}")
"""The letters of the equations and of their derivation that a name could have as well."""


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


def latex_symbols(names: Iterable[str], reserved: re.Pattern[str] | None = None) -> dict[str, str]:
    """By name the LaTeX of names that occur together, which is different for each.

    It is that of `latex_symbol`, unless several names have the same, as `m1` and `m_1` do, or it is reserved;
    these are text. reserved: matches the LaTeX of other symbols, without spaces after commas.
    """
    symbols = {name: latex_symbol(name) for name in names}
    typeset = {name: latex.replace(", ", ",") for name, latex in symbols.items()}
    counts = Counter(typeset.values())

    def is_own(name: str) -> bool:
        return counts[typeset[name]] == 1 and not (reserved and reserved.fullmatch(typeset[name]))

    return {
        name: latex if is_own(name) else rf"\text{{{escaped(repr(name)[1:-1])}}}"
        for name, latex in symbols.items()
    }


def _token(token: str) -> str:
    if token in _GREEK:
        return "\\" + token
    return token if len(token) == 1 or token.isdigit() else rf"\mathrm{{{token}}}"


def escaped(text: str) -> str:
    """A text escaped for LaTeX's text mode."""
    return "".join(_ESCAPES.get(c, c) for c in text if c.isprintable())
