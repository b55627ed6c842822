"""The code around a program's body, as LLVM IR: from arrays in memory to lane vectors and back, over many worlds.

It depends on the lanes only, not on the program, whose body it calls through a pointer:

    loop(args, dimensions, steps, switch)   an inner loop as NumPy's universal functions have it; passes the work on
    many(args, dimensions, steps, plan)     the same work, with the body of this plan
    march(job, first, count, plan)          many steps in one call; the state stays in lane vectors between them

The last block of worlds is filled up with copies of its last world, so that every world goes through the same
instructions whatever their number. A plan is a row of 64-bit words, laid out by the names of `PLAN`, then the sizes
of all input ports and all output ports; a job and a switch likewise.

`loop` does the work only if it has what it takes, and else counts a failure in the switch: so the caller need not
look at its arguments first. `many` and `march` return whether there was memory for the buffers.

While the body runs, rounding is to the nearest and subnormal numbers are kept, whatever was set before; afterwards
all is as before, floating-point flags included: arms that are not taken would raise them for nothing.
"""

from __future__ import annotations

from zwang.compile.lanes import Lanes

SWITCH = ("single", "single_plan", "many", "many_plan", "crowd", "failures")
PLAN = ("body", "allocate", "release", "inputs", "outputs", "out_offset", "scratch_offset", "bytes")
JOB = ("steps", "every", "moves", "ports")  # then `moves` rows of MOVE, then a row of PORT for each port
MOVE = ("from_output", "to_input", "size")  # positions in the buffers
PORT = (
    "data",
    "world_stride",
    "element_stride",
    "time_stride",
    "last",
)  # `last`: outputs after the last step
STACK = 4096  # bytes of buffers that go on the stack
ALIGNMENT = 128
FEW = 2  # elements that are not worth a transposition


def runtime(lanes: Lanes, is_x86: bool) -> str:
    """The module's text, for processors of the x86 or the ARM kind."""
    parts = [
        _pack(lanes),
        _unpack(lanes),
        _aligned(),
        _environment(is_x86),
        _loop(),
        _many(lanes),
        _march(lanes),
    ]
    if lanes.width > 1:
        parts += [_masked_declarations(lanes)]
    return "\n".join(parts)


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
        f"  %y{n} = getelementptr inbounds {real}, ptr %room, i64 {n}\n  store {real} {name}, ptr %y{n}"
        for n, name in enumerate(names_part)
    ]
    lines = "\n".join
    return f"""  %room = alloca [{width} x {real}], align {min(lanes.bytes, ALIGNMENT)}
  br i1 %plain, label %chunks, label %few
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
{lines(store_part)}
  br label %copying
copying:
  %c = phi i64 [ 0, %partly ], [ %c1, %copying ]
  %cp = getelementptr inbounds {real}, ptr %room, i64 %c
  %cv = load {real}, ptr %cp
  %ck = add i64 %at, %c
  %ct = getelementptr inbounds {real}, ptr %target, i64 %ck
  store {real} %cv, ptr %ct
  %c1 = add i64 %c, 1
  %cmore = icmp ult i64 %c1, %left
  br i1 %cmore, label %copying, label %end
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
        f"  %z{n} = icmp ult i64 {n}, %left\n  %i{n} = select i1 %z{n}, i64 {n}, i64 0\n"
        f"  %q{n} = getelementptr inbounds {real}, ptr %chunk_part, i64 %i{n}\n  %m{n} = load {real}, ptr %q{n}"
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
  %chunk_part = getelementptr inbounds {real}, ptr %source, i64 %at
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


def _word(name: str, base: str, words: tuple[str, ...], word: str, kind: str = "i64") -> str:
    """%name: a word of a plan or job."""
    return (
        f"  %{name}.at = getelementptr inbounds i64, ptr {base}, i64 {words.index(word)}\n"
        f"  %{name} = load {kind}, ptr %{name}.at"
    )


def _aligned() -> str:
    """The next place that is aligned for buffers."""
    return f"""
define internal ptr @aligned(ptr %raw) #0 {{
  %number = ptrtoint ptr %raw to i64
  %up = add i64 %number, {ALIGNMENT - 1}
  %rounded = and i64 %up, -{ALIGNMENT}
  %offset = sub i64 %rounded, %number
  %pointer = getelementptr i8, ptr %raw, i64 %offset
  ret ptr %pointer
}}
attributes #0 = {{ nounwind "prefer-vector-width"="512" "no-stack-arg-probe" }}
"""


def _environment(is_x86: bool) -> str:
    """Floating-point control and flags, saved, set to the usual, and restored."""
    if is_x86:
        return """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define internal i64 @enter() #0 {
  %place = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %place)
  %old = load i32, ptr %place
  store i32 8064, ptr %place
  call void @llvm.x86.sse.ldmxcsr(ptr %place)
  %wide = zext i32 %old to i64
  ret i64 %wide
}
define internal void @leave(i64 %old) #0 {
  %place = alloca i32
  %word = trunc i64 %old to i32
  store i32 %word, ptr %place
  call void @llvm.x86.sse.ldmxcsr(ptr %place)
  ret void
}
"""
    return """
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
declare i64 @llvm.aarch64.get.fpsr()
declare void @llvm.aarch64.set.fpsr(i64)
define internal i64 @enter() #0 {
  %control = call i64 @llvm.aarch64.get.fpcr()
  %flags = call i64 @llvm.aarch64.get.fpsr()
  call void @llvm.aarch64.set.fpcr(i64 0)
  %high = shl i64 %control, 32
  %both = or i64 %high, %flags
  ret i64 %both
}
define internal void @leave(i64 %both) #0 {
  %control = lshr i64 %both, 32
  %flags = and i64 %both, 4294967295
  call void @llvm.aarch64.set.fpcr(i64 %control)
  call void @llvm.aarch64.set.fpsr(i64 %flags)
  ret void
}
"""


def _with_buffers(name: str, parameters: str, work: str) -> str:
    """A function that gets its buffers, on the stack or the heap, and calls `work` with them."""
    return f"""
define i1 @{name}({parameters}) #0 {{
entry:
{_word("bytes", "%plan", PLAN, "bytes")}
{_word("allocate", "%plan", PLAN, "allocate", "ptr")}
{_word("release", "%plan", PLAN, "release", "ptr")}
  %little = icmp ule i64 %bytes, {STACK}
  br i1 %little, label %stack, label %heap
stack:
  %near = alloca i8, i64 %bytes, align 8
  %near_aligned = call ptr @aligned(ptr %near)
  %near_before = call i64 @enter()
  call void @{work}({parameters}, ptr %near_aligned)
  call void @leave(i64 %near_before)
  ret i1 true
heap:
  %far = call ptr %allocate(i64 %bytes)
  %none = icmp eq ptr %far, null
  br i1 %none, label %failed, label %good
failed:
  ret i1 false
good:
  %far_aligned = call ptr @aligned(ptr %far)
  %far_before = call i64 @enter()
  call void @{work}({parameters}, ptr %far_aligned)
  call void @leave(i64 %far_before)
  call void %release(ptr %far)
  ret i1 true
}}
"""


def _loop() -> str:
    return f"""
define void @loop(ptr %args, ptr %dimensions, ptr %steps, ptr %switch) #0 {{
entry:
  %count = load i64, ptr %dimensions
{_word("single", "%switch", SWITCH, "single", "ptr")}
{_word("single_plan", "%switch", SWITCH, "single_plan", "ptr")}
{_word("many", "%switch", SWITCH, "many", "ptr")}
{_word("many_plan", "%switch", SWITCH, "many_plan", "ptr")}
{_word("crowd", "%switch", SWITCH, "crowd")}
  %alone = icmp eq i64 %count, 1
  %way = select i1 %alone, ptr %single, ptr %many
  %plan = select i1 %alone, ptr %single_plan, ptr %many_plan
  %is_missing = icmp eq ptr %way, null
  %is_crowd = icmp ugt i64 %count, %crowd
  %is_not_for_here = or i1 %is_missing, %is_crowd
  br i1 %is_not_for_here, label %failed, label %work
work:
  %good = call i1 %way(ptr %args, ptr %dimensions, ptr %steps, ptr %plan)
  br i1 %good, label %end, label %failed
failed:
  %failures = getelementptr inbounds i64, ptr %switch, i64 {SWITCH.index("failures")}
  %before = atomicrmw add ptr %failures, i64 1 monotonic
  br label %end
end:
  ret void
}}
"""


def _many(lanes: Lanes) -> str:
    parameters = "ptr %args, ptr %dimensions, ptr %steps, ptr %plan"
    return (
        _with_buffers("many", parameters, "many_with")
        + f"""
define internal void @many_with({parameters}, ptr %in) #0 {{
entry:
  %count = load i64, ptr %dimensions
{_buffers()}
  %sizes = getelementptr inbounds i64, ptr %plan, i64 {len(PLAN)}
  %ports = add i64 %inputs, %outputs
  %any = icmp ne i64 %count, 0
  br i1 %any, label %block, label %end
block:
  %first = phi i64 [ 0, %entry ], [ %next, %after ]
  %left = sub i64 %count, %first
  %is_tail = icmp ult i64 %left, {lanes.width}
  %worlds = select i1 %is_tail, i64 %left, i64 {lanes.width}
  br label %input
input:
  %p = phi i64 [ 0, %block ], [ %p1, %input_do ]
  %buffer = phi ptr [ %in, %block ], [ %buffer1, %input_do ]
  %has_input = icmp ult i64 %p, %inputs
  br i1 %has_input, label %input_do, label %run
input_do:
{_port_of_args("i", "%p")}
  call void @pack(ptr %i.data, i64 %i.outer, i64 %i.inner, i64 %i.size, i64 %worlds, ptr %buffer)
  %buffer1 = getelementptr inbounds {lanes.real}, ptr %buffer, i64 %i.size
  %p1 = add i64 %p, 1
  br label %input
run:
  call void %body(ptr %in, ptr %out, ptr %scratch)
  br label %output
output:
  %r = phi i64 [ %inputs, %run ], [ %r1, %output_do ]
  %result = phi ptr [ %out, %run ], [ %result1, %output_do ]
  %has_output = icmp ult i64 %r, %ports
  br i1 %has_output, label %output_do, label %after
output_do:
{_port_of_args("o", "%r")}
  call void @unpack(ptr %result, i64 %o.outer, i64 %o.inner, i64 %o.size, i64 %worlds, ptr %o.data)
  %result1 = getelementptr inbounds {lanes.real}, ptr %result, i64 %o.size
  %r1 = add i64 %r, 1
  br label %output
after:
  %next = add i64 %first, %worlds
  %more = icmp ult i64 %next, %count
  br i1 %more, label %block, label %end
end:
  ret void
}}
"""
    )


def _buffers() -> str:
    return "\n".join(
        [
            _word("body", "%plan", PLAN, "body", "ptr"),
            _word("inputs", "%plan", PLAN, "inputs"),
            _word("outputs", "%plan", PLAN, "outputs"),
            _word("out_offset", "%plan", PLAN, "out_offset"),
            _word("scratch_offset", "%plan", PLAN, "scratch_offset"),
            "  %out = getelementptr inbounds i8, ptr %in, i64 %out_offset",
            "  %scratch = getelementptr inbounds i8, ptr %in, i64 %scratch_offset",
        ]
    )


def _port_of_args(x: str, p: str) -> str:
    """Of port p in a NumPy loop: data of the block's first world, both strides and the size."""
    return f"""  %{x}.arg = getelementptr inbounds ptr, ptr %args, i64 {p}
  %{x}.base = load ptr, ptr %{x}.arg
  %{x}.step = getelementptr inbounds i64, ptr %steps, i64 {p}
  %{x}.outer = load i64, ptr %{x}.step
  %{x}.inner_number = add i64 {p}, %ports
  %{x}.inner_at = getelementptr inbounds i64, ptr %steps, i64 %{x}.inner_number
  %{x}.inner = load i64, ptr %{x}.inner_at
  %{x}.size_at = getelementptr inbounds i64, ptr %sizes, i64 {p}
  %{x}.size = load i64, ptr %{x}.size_at
  %{x}.far = mul i64 %first, %{x}.outer
  %{x}.data = getelementptr i8, ptr %{x}.base, i64 %{x}.far"""


def _march(lanes: Lanes) -> str:
    parameters = "ptr %job, i64 %begin, i64 %count, ptr %plan"
    return (
        _with_buffers("march", parameters, "march_with")
        + f"""
define internal void @march_with({parameters}, ptr %in) #0 {{
entry:
{_buffers()}
  %sizes = getelementptr inbounds i64, ptr %plan, i64 {len(PLAN)}
{_word("steps", "%job", JOB, "steps")}
{_word("every", "%job", JOB, "every")}
{_word("moves", "%job", JOB, "moves")}
{_word("ports", "%job", JOB, "ports", "ptr")}
  %move_rows = getelementptr inbounds i64, ptr %job, i64 {len(JOB)}
  %end_world = add i64 %begin, %count
  %any = icmp ne i64 %count, 0
  br i1 %any, label %block, label %end
block:
  %first = phi i64 [ %begin, %entry ], [ %next, %finish ]
  %left = sub i64 %end_world, %first
  %is_tail = icmp ult i64 %left, {lanes.width}
  %worlds = select i1 %is_tail, i64 %left, i64 {lanes.width}
  call void @read_ports(ptr %ports, ptr %sizes, i64 %inputs, i64 %first, i64 %worlds, i64 0, ptr %in)
  br label %step
step:
  %time = phi i64 [ 0, %block ], [ %time1, %stepped ]
  %recorded = phi i64 [ 0, %block ], [ %recorded1, %stepped ]
  %wait = phi i64 [ 1, %block ], [ %wait1, %stepped ]
  %is_first = icmp eq i64 %time, 0
  br i1 %is_first, label %run, label %renew
renew:
  call void @read_ports(ptr %ports, ptr %sizes, i64 %inputs, i64 %first, i64 %worlds, i64 %time, ptr %in)
  call void @move_state(ptr %move_rows, i64 %moves, ptr %out, ptr %in)
  br label %run
run:
  call void %body(ptr %in, ptr %out, ptr %scratch)
  %due = icmp eq i64 %wait, %every
  br i1 %due, label %record, label %stepped
record:
  call void @write_ports(ptr %ports, ptr %sizes, i64 %inputs, i64 %outputs, i64 %first, i64 %worlds,
    i64 %recorded, i1 false, ptr %out)
  %recorded2 = add i64 %recorded, 1
  br label %stepped
stepped:
  %recorded1 = phi i64 [ %recorded, %run ], [ %recorded2, %record ]
  %wait0 = phi i64 [ %wait, %run ], [ 0, %record ]
  %wait1 = add i64 %wait0, 1
  %time1 = add i64 %time, 1
  %on = icmp ult i64 %time1, %steps
  br i1 %on, label %step, label %finish
finish:
  call void @write_ports(ptr %ports, ptr %sizes, i64 %inputs, i64 %outputs, i64 %first, i64 %worlds,
    i64 0, i1 true, ptr %out)
  %next = add i64 %first, %worlds
  %more = icmp ult i64 %next, %end_world
  br i1 %more, label %block, label %end
end:
  ret void
}}
"""
        + _read_ports(lanes)
        + _write_ports(lanes)
        + _move_state(lanes)
    )


def _port_row(port: str) -> str:
    return "\n".join(
        [
            f"  %row_number = mul i64 {port}, {len(PORT)}",
            "  %port = getelementptr inbounds i64, ptr %ports, i64 %row_number",
            *(_word(name, "%port", PORT, name) for name in PORT),
            f"  %size_at = getelementptr inbounds i64, ptr %sizes, i64 {port}",
            "  %size = load i64, ptr %size_at",
            "  %far = mul i64 %first, %world_stride",
        ]
    )


def _read_ports(lanes: Lanes) -> str:
    """All inputs at the first step, later those that change with time."""
    return f"""
define internal void @read_ports(ptr %ports, ptr %sizes, i64 %inputs, i64 %first, i64 %worlds, i64 %time, ptr %in) #0 {{
entry:
  %is_first = icmp eq i64 %time, 0
  br label %input
input:
  %p = phi i64 [ 0, %entry ], [ %p1, %done ]
  %buffer = phi ptr [ %in, %entry ], [ %buffer1, %done ]
  %some = icmp ult i64 %p, %inputs
  br i1 %some, label %row, label %end
row:
{_port_row("%p")}
  %changes = icmp ne i64 %time_stride, 0
  %wanted = or i1 %is_first, %changes
  br i1 %wanted, label %read, label %done
read:
  %late = mul i64 %time, %time_stride
  %sum = add i64 %far, %late
  %place = add i64 %data, %sum
  %source = inttoptr i64 %place to ptr
  call void @pack(ptr %source, i64 %world_stride, i64 %element_stride, i64 %size, i64 %worlds, ptr %buffer)
  br label %done
done:
  %buffer1 = getelementptr inbounds {lanes.real}, ptr %buffer, i64 %size
  %p1 = add i64 %p, 1
  br label %input
end:
  ret void
}}
"""


def _write_ports(lanes: Lanes) -> str:
    """The outputs that are recorded, into their record, or at the last step those that are wanted then."""
    return f"""
define internal void @write_ports(ptr %ports, ptr %sizes, i64 %inputs, i64 %outputs, i64 %first, i64 %worlds,
    i64 %record, i1 %is_last, ptr %out) #0 {{
entry:
  %all = add i64 %inputs, %outputs
  br label %output
output:
  %p = phi i64 [ %inputs, %entry ], [ %p1, %done ]
  %buffer = phi ptr [ %out, %entry ], [ %buffer1, %done ]
  %some = icmp ult i64 %p, %all
  br i1 %some, label %row, label %end
row:
{_port_row("%p")}
  %base = select i1 %is_last, i64 %last, i64 %data
  %late = mul i64 %record, %time_stride
  %contiguous = mul i64 %size, {lanes.bits // 8}
  %outer = select i1 %is_last, i64 %contiguous, i64 %world_stride
  %last_far = mul i64 %first, %contiguous
  %early = add i64 %far, %late
  %sum = select i1 %is_last, i64 %last_far, i64 %early
  %wanted = icmp ne i64 %base, 0
  br i1 %wanted, label %write, label %done
write:
  %place = add i64 %base, %sum
  %target = inttoptr i64 %place to ptr
  call void @unpack(ptr %buffer, i64 %outer, i64 {lanes.bits // 8}, i64 %size, i64 %worlds, ptr %target)
  br label %done
done:
  %buffer1 = getelementptr inbounds {lanes.real}, ptr %buffer, i64 %size
  %p1 = add i64 %p, 1
  br label %output
end:
  ret void
}}
"""


def _move_state(lanes: Lanes) -> str:
    return f"""
define internal void @move_state(ptr %rows, i64 %moves, ptr %out, ptr %in) #0 {{
entry:
  br label %row
row:
  %m = phi i64 [ 0, %entry ], [ %m1, %moved ]
  %some = icmp ult i64 %m, %moves
  br i1 %some, label %begin, label %end
begin:
  %number = mul i64 %m, {len(MOVE)}
  %move = getelementptr inbounds i64, ptr %rows, i64 %number
{_word("from", "%move", MOVE, "from_output")}
{_word("to", "%move", MOVE, "to_input")}
{_word("size", "%move", MOVE, "size")}
  %source = getelementptr inbounds {lanes.real}, ptr %out, i64 %from
  %target = getelementptr inbounds {lanes.real}, ptr %in, i64 %to
  br label %turn
turn:
  %k = phi i64 [ 0, %begin ], [ %k1, %copy ]
  %has = icmp ult i64 %k, %size
  br i1 %has, label %copy, label %moved
copy:
  %a = getelementptr inbounds {lanes.real}, ptr %source, i64 %k
  %b = getelementptr inbounds {lanes.real}, ptr %target, i64 %k
  %x = load {lanes.real}, ptr %a
  store {lanes.real} %x, ptr %b
  %k1 = add i64 %k, 1
  br label %turn
moved:
  %m1 = add i64 %m, 1
  br label %row
end:
  ret void
}}
"""
