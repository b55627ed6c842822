"""From rows in memory, one a world, to lane vectors and back, as LLVM IR: the runtime's `pack` and `unpack`.

Elements that lie side by side are read a vector at a time and transposed; all else goes element by element. Where the
number of elements is no multiple of the lanes, `pack` writes and `unpack` reads beyond a port's end, up to `slack`
lane vectors: buffers leave that room.
"""

from __future__ import annotations

from zwang.compiler.backends.llvm.lanes import Lanes

FEW = 2  # elements that are not worth a transposition


def slack(lanes: Lanes) -> int:
    """Lane vectors to be left free after every input port, and after all outputs."""
    return lanes.width if lanes.width > 1 else 0


def packing(lanes: Lanes) -> str:
    """Both functions."""
    declared = [_masked_declarations(lanes)] if lanes.width > 1 else []
    return "\n".join([_pack(lanes), _unpack(lanes), *declared])


def _masked_declarations(lanes: Lanes) -> str:
    real, truth, suffix = lanes.real, lanes.truth, lanes.suffix
    return (
        f"declare {real} @llvm.masked.load.{suffix}.p0(ptr, i32, {truth}, {real})\n"
        f"declare void @llvm.masked.store.{suffix}.p0({real}, ptr, i32, {truth})\n"
    )


def _pack(lanes: Lanes) -> str:
    """Elements of a port, `inner` bytes apart, of worlds `outer` bytes apart, to lane vectors."""
    size = lanes.bits // 8
    rows = "\n".join(_row_pointer(n) for n in range(lanes.width))
    return f"""
define internal void @pack(ptr %source, i64 %outer, i64 %inner, i64 %count, i64 %worlds, ptr %target) #0 {{
entry:
  %last = sub i64 %worlds, 1
{rows}
  %plain = icmp eq i64 %inner, {size}
  br label %ready
ready:
{_pack_chunks(lanes) if lanes.width > 1 else "  br label %single"}
single:
  %from = phi i64 [ {"%at_few, %few" if lanes.width > 1 else "0, %ready"} ]
  %some = icmp ult i64 %from, %count
  br i1 %some, label %turn, label %end
turn:
  %k = phi i64 [ %from, %single ], [ %k1, %turn ]
  %shift = mul i64 %k, %inner
{_gather(lanes)}
  %place = getelementptr inbounds {lanes.real}, ptr %target, i64 %k
  store {lanes.real} %gathered, ptr %place
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %count
  br i1 %more, label %turn, label %end
end:
  ret void
}}
"""


def _row_pointer(n: int) -> str:
    """A pointer to the row of world n, or of the last world if there are fewer."""
    return (
        f"  %beyond{n} = icmp ult i64 {n}, %last\n"
        f"  %world{n} = select i1 %beyond{n}, i64 {n}, i64 %last\n"
        f"  %far{n} = mul i64 %world{n}, %outer\n"
        f"  %row{n} = getelementptr i8, ptr %source, i64 %far{n}"
    )


def _gather(lanes: Lanes) -> str:
    """One element of every row, one load a lane."""
    rows = [f"  %p{n} = getelementptr i8, ptr %row{n}, i64 %shift" for n in range(lanes.width)]
    align = f"align {lanes.bits // 8}"
    if lanes.width == 1:
        return "\n".join([*rows, f"  %gathered = load {lanes.scalar}, ptr %p0, {align}"])
    before = "poison"
    for n in range(lanes.width):
        name = "%gathered" if n == lanes.width - 1 else f"%g{n}"
        rows.append(f"  %x{n} = load {lanes.scalar}, ptr %p{n}, {align}")
        rows.append(f"  {name} = insertelement {lanes.real} {before}, {lanes.scalar} %x{n}, i64 {n}")
        before = name
    return "\n".join(rows)


def _transpose(lanes: Lanes, names: list[str], prefix: str) -> tuple[list[str], list[str]]:
    """Rows that transpose as many vectors as there are lanes, and the names of the results."""
    text, width, span = [], lanes.width, 1
    while span < width:
        new = list(names)
        for n in [n for n in range(width) if not n & span]:
            a, b = names[n], names[n | span]
            low = [width + (j ^ span) if j & span else j for j in range(width)]
            high = [width + j if j & span else j ^ span for j in range(width)]
            for k, places in ((n, low), (n | span, high)):
                new[k] = f"%{prefix}{span}_{k}"
                mask = ", ".join(f"i32 {place}" for place in places)
                text.append(
                    f"  {new[k]} = shufflevector {lanes.real} {a}, {lanes.real} {b}, <{width} x i32> <{mask}>"
                )
        names, span = new, 2 * span
    return text, names


def _pack_chunks(lanes: Lanes) -> str:
    """As many elements at a time as there are lanes, where they lie side by side; what is left, with masks."""
    width, real, size = lanes.width, lanes.real, lanes.bits // 8
    full = [f"  %v{n} = load {real}, ptr %a{n}, align {size}" for n in range(width)]
    part = [
        f"  %m{n} = call {real} @llvm.masked.load.{lanes.suffix}.p0"
        f"(ptr %b{n}, i32 {size}, {lanes.truth} %mask, {real} zeroinitializer)"
        for n in range(width)
    ]
    turned, names = _transpose(lanes, [f"%v{n}" for n in range(width)], "t")
    turned_part, names_part = _transpose(lanes, [f"%m{n}" for n in range(width)], "u")
    store = [
        f"  %w{n} = getelementptr inbounds {real}, ptr %chunk, i64 {n}\n  store {real} {name}, ptr %w{n}"
        for n, name in enumerate(names)
    ]
    store_part = [
        f"  %y{n} = getelementptr inbounds {real}, ptr %part, i64 {n}\n  store {real} {name}, ptr %y{n}"
        for n, name in enumerate(names_part)
    ]
    lines = "\n".join
    return f"""  br i1 %plain, label %chunks, label %few
chunks:
  %at = phi i64 [ 0, %ready ], [ %at1, %whole ]
  %left = sub i64 %count, %at
  %enough = icmp uge i64 %left, {width}
  br i1 %enough, label %whole, label %rest
whole:
{_in_rows(lanes, "a")}
{lines(full)}
{lines(turned)}
  %chunk = getelementptr inbounds {real}, ptr %target, i64 %at
{lines(store)}
  %at1 = add i64 %at, {width}
  br label %chunks
rest:
  %many = icmp ugt i64 %left, {FEW}
  br i1 %many, label %partly, label %few_left
partly:
{_mask(lanes)}
{_in_rows(lanes, "b")}
{lines(part)}
{lines(turned_part)}
  %part = getelementptr inbounds {real}, ptr %target, i64 %at
{lines(store_part)}
  br label %end
few_left:
  br label %few
few:
  %at_few = phi i64 [ 0, %ready ], [ %at, %few_left ]
  br label %single"""


def _in_rows(lanes: Lanes, letter: str) -> str:
    """Pointers to the element number %at of every row."""
    return "\n".join(
        f"  %{letter}{n} = getelementptr {lanes.scalar}, ptr %row{n}, i64 %at" for n in range(lanes.width)
    )


def _mask(lanes: Lanes) -> str:
    """The lanes below %left."""
    places = ", ".join(f"i64 {n}" for n in range(lanes.width))
    wide = lanes.vector("i64")
    return (
        f"  %left1 = insertelement {wide} poison, i64 %left, i64 0\n"
        f"  %lefts = shufflevector {wide} %left1, {wide} poison, <{lanes.width} x i32> zeroinitializer\n"
        f"  %mask = icmp ult {wide} <{places}>, %lefts"
    )


def _unpack(lanes: Lanes) -> str:
    """The way back; only rows of worlds that there are."""
    size = lanes.bits // 8
    wide = lanes.width > 1
    return f"""
define internal void @unpack(ptr %source, i64 %outer, i64 %inner, i64 %count, i64 %worlds, ptr %target) #0 {{
entry:
  br label %ready
ready:
{_unpack_chunks(lanes) if wide else "  br label %single"}
single:
  %from = phi i64 [ {"%at_few, %few" if wide else "0, %ready"} ]
  br label %element
element:
  %k = phi i64 [ %from, %single ], [ %k1, %done ]
  %some = icmp ult i64 %k, %count
  br i1 %some, label %start, label %end
start:
  %shift = mul i64 %k, %inner
  %first = mul i64 %k, {lanes.width}
  br label %turn
turn:
  %n = phi i64 [ 0, %start ], [ %n1, %turn ]
  %lane = add i64 %first, %n
  %from_place = getelementptr inbounds {lanes.scalar}, ptr %source, i64 %lane
  %x = load {lanes.scalar}, ptr %from_place
  %far = mul i64 %n, %outer
  %both = add i64 %far, %shift
  %to_place = getelementptr i8, ptr %target, i64 %both
  store {lanes.scalar} %x, ptr %to_place, align {size}
  %n1 = add i64 %n, 1
  %more = icmp ult i64 %n1, %worlds
  br i1 %more, label %turn, label %done
done:
  %k1 = add i64 %k, 1
  br label %element
end:
  ret void
}}
"""


def _unpack_chunks(lanes: Lanes) -> str:
    width, real, size = lanes.width, lanes.real, lanes.bits // 8
    lines = "\n".join
    load = [
        f"  %w{n} = getelementptr inbounds {real}, ptr %chunk, i64 {n}\n  %v{n} = load {real}, ptr %w{n}"
        for n in range(width)
    ]
    turned, names = _transpose(lanes, [f"%v{n}" for n in range(width)], "t")
    full = [f"  store {real} {name}, ptr %a{n}, align {size}" for n, name in enumerate(names)]
    part_load = [
        f"  %q{n} = getelementptr inbounds {real}, ptr %part, i64 {n}\n  %m{n} = load {real}, ptr %q{n}"
        for n in range(width)
    ]
    turned_part, names_part = _transpose(lanes, [f"%m{n}" for n in range(width)], "u")
    part = [
        f"  call void @llvm.masked.store.{lanes.suffix}.p0"
        f"({real} {name}, ptr %b{n}, i32 {size}, {lanes.truth} %mask)"
        for n, name in enumerate(names_part)
    ]
    pointers = [
        f"  %far{n} = mul i64 {n}, %outer\n  %row{n} = getelementptr i8, ptr %target, i64 %far{n}"
        for n in range(width)
    ]
    return f"""{lines(pointers)}
  %plain = icmp eq i64 %inner, {size}
  %all = icmp eq i64 %worlds, {width}
  %quick = and i1 %plain, %all
  br i1 %quick, label %chunks, label %few
chunks:
  %at = phi i64 [ 0, %ready ], [ %at1, %whole ]
  %left = sub i64 %count, %at
  %enough = icmp uge i64 %left, {width}
  br i1 %enough, label %whole, label %rest
whole:
  %chunk = getelementptr inbounds {real}, ptr %source, i64 %at
{lines(load)}
{lines(turned)}
{_in_rows(lanes, "a")}
{lines(full)}
  %at1 = add i64 %at, {width}
  br label %chunks
rest:
  %many = icmp ugt i64 %left, {FEW}
  br i1 %many, label %partly, label %few_left
partly:
  %part = getelementptr inbounds {real}, ptr %source, i64 %at
{_mask(lanes)}
{lines(part_load)}
{lines(turned_part)}
{_in_rows(lanes, "b")}
{lines(part)}
  br label %end
few_left:
  br label %few
few:
  %at_few = phi i64 [ 0, %ready ], [ %at, %few_left ]
  br label %single"""
