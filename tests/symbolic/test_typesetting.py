"""Equations in a notebook: common subexpressions, a limit on their number, and escaped names."""

from __future__ import annotations

import html as html_text
import re

import pytest
import sympy as sp

import zwang as zw
from tests.viewer.scenes import HOSTILE, Elements
from zwang.mechanism.samples import four_bar, furuta
from zwang.symbolic import latex_names, typesetting


def formulas(text: str) -> list[str]:
    return [html_text.unescape(found) for found in re.findall(r"\$\$(.*?)\$\$", text, re.DOTALL)]


def test_small_equations_have_a_matrix_a_column_and_the_way_there():
    e = zw.equations(furuta())
    shown = formulas(e._repr_html_())
    assert shown[0].startswith(r"\mathbf{u} = ") and shown[0].endswith(r"= \mathbf{r}")
    assert shown[1] == r"\mathbf{M}^{*} = " + typesetting.to_latex(e.mass_matrix, e.symbols.latex)
    assert shown[2] == r"\mathbf{r} = " + typesetting.to_latex(e.right_hand_side, e.symbols.latex)
    assert len(shown) == 3 + len(e.steps())
    assert Elements(e.html()).texts("summary") == ["Derivation, step by step"]


def test_large_ones_have_named_subexpressions_each_before_it_is_used():
    e = zw.equations(four_bar())
    defined, mass, rhs = e._cse
    shown = formulas(e.html())
    entries = sum(mass[i, j] != 0 for i in range(mass.rows) for j in range(i, mass.cols))
    assert len(shown) == 1 + len(defined) + entries + len(rhs)
    names = [text.partition(" = ")[0] for text in shown[1 : 1 + len(defined)]]
    assert len(set(names)) == len(defined)
    for k, text in enumerate(shown[1 : 1 + len(defined)]):
        used = set(re.findall(r"x_\{\d+\}", text.partition(" = ")[2]))
        assert used <= set(names[:k])
    assert all("&=" not in text for text in shown)


def test_a_notebook_gets_no_more_formulas_than_it_can_typeset():
    e = zw.equations(four_bar())
    whole, cut = e.html(), typesetting.html(e, 5)
    assert len(formulas(cut)) < len(formulas(whole))
    assert f"and {len(e._cse[0]) - 5} more" in cut and "more, which" not in whole


@pytest.mark.parametrize("name", HOSTILE)
def test_names_change_no_markup(name):
    def tags(name: str) -> list[str]:
        body = zw.Body(name, zw.Revolute(name, axis=(0, 1, 0)), mass=1, com=(0, 0, -1))
        e = zw.equations(zw.Mechanism(name, [body], forces=[zw.Motor(name, name)]))
        return [tag for tag, _, _ in Elements(e._repr_html_()).found]

    assert tags(name) == tags("plain")


def test_formulas_reach_the_typesetter_as_they_were_written():
    name = "a&lt;b"
    body = zw.Body(name, zw.Revolute(name, axis=(0, 1, 0)), mass=1, com=(0, 0, -1))
    shown = "".join(Elements(zw.equations(zw.Mechanism("m", [body])).html()).texts("div"))
    assert r"a\&lt;b" in shown and "a<b" not in shown


def test_definitions_are_typeset_otherwise_than_coordinates_of_their_name():
    """The joint "x1" is typeset as the definition "x_1" would be."""
    links = [
        zw.Body(f"b{k}", zw.Revolute(f"x{k}", axis=(0, 1, 0)), f"b{k - 1}" if k else "world",
                mass=1, com=(0, 0, -1))
        for k in range(2)
    ]  # fmt: skip
    e = zw.equations(zw.Mechanism("double", links, gravity=(0, 0, -9.81)), form="cse")
    written = [typesetting.to_latex(s, e.symbols.latex) for s in (*e.q, *(s for s, _ in e.definitions))]
    assert len(set(written)) == len(written)


def test_names_that_differ_are_typeset_otherwise():
    """Parameters, coordinates, velocities, accelerations and inputs whose names differ by `_` alone."""
    m = sp.symbols("m1 m_1", positive=True)
    links = [
        zw.Body(name, zw.Revolute(name, axis=(0, 1, 0)), above, mass=mass, com=(0, 0, -1))
        for name, above, mass in zip(("theta1", "theta_1"), ("world", "theta1"), m, strict=True)
    ]
    motors = [zw.Motor("tau_1", "theta1"), zw.Motor("tau1", "theta_1"), zw.Motor("tau2", "theta1")]
    machine = zw.Mechanism("double", links, forces=motors, gravity=(0, 0, -9.81))
    e = zw.equations(machine)
    s = e.symbols
    symbols = (*m, *s.q, *s.v, *s.u_dot, *s.inputs.values())
    written = [typesetting.to_latex(x, s.latex) for x in symbols]
    assert len(set(written)) == len(written) == 11
    assert all(text in e.latex() for text in written if text not in map(s.latex.get, s.v))
    assert s.latex[s.inputs["tau2"]] == r"\tau_{2}" and s.latex[s.q[0]] == r"\text{theta1}"
    linear = zw.linearize(machine, [0, 0]).latex()
    assert r"\text{m1}" in linear and r"\text{m\_1}" in linear and "m_{1}" not in linear


def test_parameters_are_typeset_otherwise_than_the_letters_of_the_derivation():
    """A parameter for each letter that a name can have, as it is or with an index."""
    letters = "u r B M D K P X X_0 Gamma r_1 r1 Q_1 lambda_1 M_1_1 x_1 omega_1 x_C R_0_1".split()
    values = sp.symbols(letters, positive=True)
    stiffness = sum(values[1:], start=values[0])
    bodies = [
        zw.Body(name, zw.Revolute(f"j{name}", axis=(0, 1, 0)), above, (0, 0, -values[k]), mass=values[k + 2],
                com=(0, 0, -values[k + 4]), inertia=(1, 2, 2))
        for k, (name, above) in enumerate([("a", "world"), ("b", "a"), ("c", "b")])
    ]  # fmt: skip
    coupling = zw.JointCoupling("hold", "jb", "jc", (0, 1))
    m = zw.Mechanism("m", bodies, forces=[zw.Spring("ja", stiffness)], constraints=[coupling])
    for form in ("cse", "expanded"):
        e = zw.equations(m, form=form)
        text = "\n".join([e.latex(report=True), e.latex(), typesetting.mass_matrix_latex(e)])
        left = re.findall(r"(?:^|\\\\ )([^&\n]*?) &=", text, re.MULTILINE)
        plain = {re.sub(r"\s", "", letter) for letter in left}
        written = {typesetting.to_latex(s, e.symbols.latex).replace(", ", ",") for s in values}
        assert len(written) == len(values) and not written & plain
        assert {r"\mathbf{x}_{1}", r"\boldsymbol{\omega}_{1}", r"\boldsymbol{\lambda}_{1}"} <= plain
        assert form == "expanded" or {r"\mathbf{M}_{1,1}", r"\mathbf{r}_{1}"} <= plain
        assert typesetting.to_latex(values[1], e.symbols.latex) == "r"
    linear = zw.linearize(symbolic_pendulum("A"), [0.0]).latex()
    assert r"\mathbf{A} &=" in linear and "A^{2}" in linear


def symbolic_pendulum(name: str) -> zw.Mechanism:
    length = sp.Symbol(name, positive=True)
    body = zw.Body("b", zw.Revolute("j", axis=(0, 1, 0)), mass=1, com=(0, 0, -length))
    return zw.Mechanism("pendulum", [body], gravity=(0, 0, -9.81))


def test_names_alone_with_their_symbol_are_typeset_by_it():
    names = ("a1", "a_1", "a_2", "alpha", "a b", "a b\x00", "x_1_2", "x1_2")
    found = latex_names.latex_symbols(names)
    assert len(set(found.values())) == len(names)
    assert (found["a_2"], found["alpha"], found["a b"]) == ("a_{2}", r"\alpha", r"\text{a b}")
