"""Sinking of values into the branch that alone uses them: they are not computed where it is not taken.

An algorithm computes what it may need before a branch, such as the orientations of two shapes before the
test whether they are near each other. What the test does not need moves into the branch. Nothing moves into
a loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zwang.compiler.ir.graph import Array, Control, Node, Scope, TracedBody, user_line
from zwang.errors import TraceError

PINNED = frozenset({"input", "parameter", "result", "const", "index", "true", "false", "lane"})
"""Operations that are no computation, or are repeated in each block."""
ACROSS_LANES = frozenset({"lane_maximum", "active_index", "active_count"})
"""Operations whose results depend on the lanes that take a branch."""
OVERWRITING = frozenset({"store", "scatter", "for", "while", "cond"})


def sink(results: Sequence[Node], root: Scope) -> None:
    """Move the nodes that these results of the root need to the innermost scopes that they can be in."""
    nodes = sorted(_needed(results), key=lambda node: node.number, reverse=True)
    deepest_overwriting: dict[Node, int] = {}
    for node in nodes:
        if node.op in OVERWRITING:
            for a in node.args:
                if isinstance(a, Array):
                    deepest_overwriting[a] = max(deepest_overwriting.get(a, 0), node.scope.depth)
    users = dict.fromkeys(results, root)  # the innermost scope that contains all users of a node

    def use(node: Node, scope: Scope) -> None:
        known = users.get(node)
        users[node] = scope if known is None else _common(known, scope)

    for node in nodes:  # users come before what they use
        scope = node.scope
        if users[node] is not scope and _is_movable(node, deepest_overwriting):
            scope = node.scope = _innermost(scope, users[node])
        for a in node.args:
            use(a, scope)
        for body in _bodies(node):
            for result in body.results:
                use(result, body.scope)


def _needed(results: Sequence[Node]) -> set[Node]:
    """The nodes that these results need."""
    found, waiting = set(results), list(results)
    while waiting:
        node = waiting.pop()
        for a in (*node.args, *(result for body in _bodies(node) for result in body.results)):
            if a not in found:
                found.add(a)
                waiting.append(a)
    return found


def _bodies(node: Node) -> Iterator[TracedBody]:
    """The bodies of a loop or a branch."""
    if type(node) is Control:
        yield from (node.data[1],) if node.op == "for" else node.data


def _is_movable(node: Node, deepest_overwriting: dict[Node, int]) -> bool:
    """Whether a node has the same value in a branch; an element of an array only if nothing in the scope of
    the node overwrites the array.
    """
    if node.op in PINNED or node.op in ACROSS_LANES or isinstance(node, (Array, Control)):
        return False
    depth = node.scope.depth
    return all(deepest_overwriting.get(a, -1) < depth for a in node.args if isinstance(a, Array))


def _common(one: Scope, other: Scope) -> Scope:
    """The innermost scope that contains both."""
    while one is not other:
        if one.depth >= other.depth:
            assert one.parent is not None
            one = one.parent
        else:
            assert other.parent is not None
            other = other.parent
    return one


def escaped_value() -> TraceError:
    """The error for a result of the program or of a body that another body created."""
    return TraceError(
        f"{user_line()}: an output is a value created inside a loop or branch; "
        "return it from the body instead"
    )


def _innermost(scope: Scope, user: Scope) -> Scope:
    """The innermost scope between these two, of which the first contains the second, that is entered by
    branches only. Raises TraceError if the first does not contain the second.
    """
    path = []
    while user is not scope:
        path.append(user)
        if user.parent is None:
            raise escaped_value()
        user = user.parent
    for inner in reversed(path):
        if not inner.keeps:
            break
        scope = inner
    return scope
