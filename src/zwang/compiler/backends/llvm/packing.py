"""The LLVM functions `pack` and `unpack`: from arrays with one row per world to lane vectors, and back; and
`pack_integers` and `unpack_integers` for arrays of small integers.

Contiguous elements are read a vector at a time and transposed; an element whose values in consecutive worlds
are contiguous is read as one vector; all others are transferred one by one. Where
the number of elements is not a multiple of the number of lanes, `unpack` reads up to `output_padding` lane
vectors beyond the end of a port, for which the output buffer has space.
"""

from __future__ import annotations

from collections.abc import Sequence

from zwang.compiler.backends.llvm.lanes import Lanes
from zwang.compiler.backends.llvm.template_files import fill_template

FEW = 2  # number of remaining elements up to which a transposition does not pay


def output_padding(lanes: Lanes) -> int:
    """Number of unused lane vectors after all outputs."""
    return lanes.width if lanes.width > 1 else 0


def packing_functions(lanes: Lanes) -> str:
    """The LLVM text of these functions."""
    declarations = [_masked_declarations(lanes)] if lanes.width > 1 else []
    kinds = {
        "scalar": lanes.scalar,
        "real": lanes.real,
        "int": lanes.vector("i32"),
        "short": lanes.vector("i16"),
    }
    of_integers = [
        fill_template(name, width=lanes.width, **kinds) for name in ("pack_integers", "unpack_integers")
    ]
    return "\n\n".join([_pack(lanes), _unpack(lanes), *of_integers, *declarations])


def _masked_declarations(lanes: Lanes) -> str:
    real, truth, suffix = lanes.real, lanes.truth, lanes.suffix
    return (
        f"declare {real} @llvm.masked.load.{suffix}.p0(ptr, i32, {truth}, {real})\n"
        f"declare void @llvm.masked.store.{suffix}.p0({real}, ptr, i32, {truth})\n"
    )


def _pack(lanes: Lanes) -> str:
    is_vector = lanes.width > 1
    row_pointers = "\n".join(_row_pointer(n) for n in range(lanes.width))
    return fill_template(
        "pack",
        real=lanes.real,
        real_bytes=lanes.scalar_bytes,
        vectorised=(
            _pack_vectorised(lanes, row_pointers) if is_vector else f"{row_pointers}\n  br label %single"
        ),
        first_single="%at_scalar, %scalar" if is_vector else "0, %ready",
        gathered=_gathered_element(lanes),
    )


def _row_pointer(n: int) -> str:
    """The address of the row of world n, or of the last world if there are fewer."""
    return (
        f"  %beyond{n} = icmp ult i64 {n}, %last\n"
        f"  %world{n} = select i1 %beyond{n}, i64 {n}, i64 %last\n"
        f"  %far{n} = mul i64 %world{n}, %outer\n"
        f"  %row{n} = getelementptr i8, ptr %source, i64 %far{n}"
    )


def _gathered_element(lanes: Lanes) -> str:
    """One element of every row as a lane vector, by one load per lane."""
    lines = [f"  %p{n} = getelementptr i8, ptr %row{n}, i64 %shift" for n in range(lanes.width)]
    align = f"align {lanes.scalar_bytes}"
    if lanes.width == 1:
        return "\n".join([*lines, f"  %gathered = load {lanes.scalar}, ptr %p0, {align}"])
    before = "poison"
    for n in range(lanes.width):
        name = "%gathered" if n == lanes.width - 1 else f"%g{n}"
        lines.append(f"  %x{n} = load {lanes.scalar}, ptr %p{n}, {align}")
        lines.append(f"  {name} = insertelement {lanes.real} {before}, {lanes.scalar} %x{n}, i64 {n}")
        before = name
    return "\n".join(lines)


def _transposition(lanes: Lanes, names: list[str], prefix: str) -> tuple[str, list[str]]:
    """Instructions that transpose a square block of lane vectors, and the names of the results.

    Step s = 1, 2, 4, ... exchanges the off-diagonal s x s blocks of every 2s x 2s block.
    """
    lines, width, span = [], lanes.width, 1
    while span < width:
        new = list(names)
        for n in [n for n in range(width) if not n & span]:
            a, b = names[n], names[n | span]
            low = [width + (j ^ span) if j & span else j for j in range(width)]
            high = [width + j if j & span else j ^ span for j in range(width)]
            for k, elements in ((n, low), (n | span, high)):
                new[k] = f"%{prefix}{span}_{k}"
                mask = ", ".join(f"i32 {element}" for element in elements)
                lines.append(
                    f"  {new[k]} = shufflevector {lanes.real} {a}, {lanes.real} {b}, <{width} x i32> <{mask}>"
                )
        names, span = new, 2 * span
    return "\n".join(lines), names


def _pack_vectorised(lanes: Lanes, row_pointers: str) -> str:
    """Contiguous elements, as many at a time as there are lanes; the remaining ones with masks."""
    size, numbers = lanes.scalar_bytes, range(lanes.width)
    transposition, names = _transposition(lanes, [f"%v{n}" for n in numbers], "t")
    partial_transposition, partial_names = _transposition(lanes, [f"%m{n}" for n in numbers], "u")
    return fill_template(
        "pack_vectorised",
        width=lanes.width,
        real=lanes.real,
        real_bytes=size,
        few=FEW,
        row_pointers=row_pointers,
        addresses=_row_addresses(lanes, "a"),
        loads="\n".join(f"  %v{n} = load {lanes.real}, ptr %a{n}, align {size}" for n in numbers),
        transposition=transposition,
        stores=_vector_stores(lanes, names, "w", "%chunk"),
        mask=_mask(lanes),
        partial_addresses=_row_addresses(lanes, "b"),
        partial_loads="\n".join(
            f"  %m{n} = call {lanes.real} @llvm.masked.load.{lanes.suffix}.p0"
            f"(ptr %b{n}, i32 {size}, {lanes.truth} %mask, {lanes.real} zeroinitializer)"
            for n in numbers
        ),
        partial_transposition=partial_transposition,
        partial_stores=_first_vector_stores(lanes, partial_names),
    )


def _first_vector_stores(lanes: Lanes, names: Sequence[str]) -> str:
    """Stores of the first %left lane vectors, at least one and not all, from %part on: from the last of them
    to the first. The branch to the last one is the same in every block of worlds.
    """
    most = len(names) - 1
    cases = " ".join(f"i64 {k}, label %part{k}" for k in range(1, most))
    lines = [f"  switch i64 %left, label %part{most} [{cases}]"]
    for k in range(most, 0, -1):
        lines += [
            f"part{k}:",
            f"  %y{k} = getelementptr inbounds {lanes.real}, ptr %part, i64 {k - 1}",
            f"  store {lanes.real} {names[k - 1]}, ptr %y{k}",
            f"  br label %{f'part{k - 1}' if k > 1 else 'end'}",
        ]
    return "\n".join(lines)


def _vector_stores(lanes: Lanes, names: Sequence[str], letter: str, base: str) -> str:
    """Stores of lane vectors to consecutive addresses from `base` on."""
    return "\n".join(
        f"  %{letter}{n} = getelementptr inbounds {lanes.real}, ptr {base}, i64 {n}\n"
        f"  store {lanes.real} {name}, ptr %{letter}{n}"
        for n, name in enumerate(names)
    )


def _vector_loads(lanes: Lanes, result: str, letter: str, base: str) -> str:
    """Loads of lane vectors from consecutive addresses from `base` on."""
    return "\n".join(
        f"  %{letter}{n} = getelementptr inbounds {lanes.real}, ptr {base}, i64 {n}\n"
        f"  %{result}{n} = load {lanes.real}, ptr %{letter}{n}"
        for n in range(lanes.width)
    )


def _row_addresses(lanes: Lanes, letter: str) -> str:
    """The addresses of element %at of every row."""
    return "\n".join(
        f"  %{letter}{n} = getelementptr {lanes.scalar}, ptr %row{n}, i64 %at" for n in range(lanes.width)
    )


def _mask(lanes: Lanes) -> str:
    """The mask of the lanes whose number is below %left."""
    numbers = ", ".join(f"i64 {n}" for n in range(lanes.width))
    wide = lanes.vector("i64")
    return (
        f"  %left1 = insertelement {wide} poison, i64 %left, i64 0\n"
        f"  %lefts = shufflevector {wide} %left1, {wide} poison, <{lanes.width} x i32> zeroinitializer\n"
        f"  %mask = icmp ult {wide} <{numbers}>, %lefts"
    )


def _unpack(lanes: Lanes) -> str:
    is_vector = lanes.width > 1
    return fill_template(
        "unpack",
        scalar=lanes.scalar,
        width=lanes.width,
        real_bytes=lanes.scalar_bytes,
        vectorised=_unpack_vectorised(lanes) if is_vector else "  br label %single",
        first_single="%at_scalar, %scalar" if is_vector else "0, %ready",
    )


def _unpack_vectorised(lanes: Lanes) -> str:
    """Contiguous elements of a full block of worlds; the remaining ones with masks."""
    size, numbers = lanes.scalar_bytes, range(lanes.width)
    transposition, names = _transposition(lanes, [f"%v{n}" for n in numbers], "t")
    partial_transposition, partial_names = _transposition(lanes, [f"%m{n}" for n in numbers], "u")
    return fill_template(
        "unpack_vectorised",
        width=lanes.width,
        real=lanes.real,
        real_bytes=size,
        few=FEW,
        row_pointers="\n".join(
            f"  %far{n} = mul i64 {n}, %outer\n  %row{n} = getelementptr i8, ptr %target, i64 %far{n}"
            for n in numbers
        ),
        loads=_vector_loads(lanes, "v", "w", "%chunk"),
        transposition=transposition,
        addresses=_row_addresses(lanes, "a"),
        stores="\n".join(
            f"  store {lanes.real} {name}, ptr %a{n}, align {size}" for n, name in enumerate(names)
        ),
        mask=_mask(lanes),
        partial_loads=_vector_loads(lanes, "m", "q", "%part"),
        partial_transposition=partial_transposition,
        partial_addresses=_row_addresses(lanes, "b"),
        partial_stores="\n".join(
            f"  call void @llvm.masked.store.{lanes.suffix}.p0"
            f"({lanes.real} {name}, ptr %b{n}, i32 {size}, {lanes.truth} %mask)"
            for n, name in enumerate(partial_names)
        ),
    )
