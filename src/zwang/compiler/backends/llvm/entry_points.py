"""The code around a program's body, as LLVM IR: from arrays in memory to lane vectors and back, over many worlds.

It depends on the lanes only, not on the program, whose body it calls through a pointer:

    loop(args, dimensions, steps, switch)   an inner loop as NumPy's universal functions have it; passes the work on
    many(args, dimensions, steps, plan)     the same work, with the body of this plan
    march(job, first, count, plan)          many steps in one call; the state stays in lane vectors between them;
                                            it ends early, without its last results, when `stop` of the job is set

The last block of worlds is filled up with copies of its last world, so that every world goes through the same
instructions whatever their number. A plan is a row of 64-bit words, laid out by the names of `PLAN`, then the sizes
of all input ports and all output ports; a job and a switch likewise.

`loop` does the work only if it has what it takes, and else counts a failure in the switch: so the caller need not
look at its arguments first. `many` and `march` return whether there was memory for the buffers.

While the body runs, rounding is to the nearest and subnormal numbers are kept, whatever was set before; afterwards
all is as before, floating-point flags included: arms that are not taken would raise them for nothing.
"""

from __future__ import annotations

from zwang.compiler.backends.llvm.lanes import Lanes
from zwang.compiler.backends.llvm.packing import packing, slack
from zwang.compiler.backends.llvm.writer import ALIGNMENT

SWITCH = (
    "single",
    "many",
    "crowd",
    "failures",
)  # plans for one world alone and for many; 0 where there is none
PLAN = ("work", "body", "allocate", "release", "inputs", "outputs", "out_offset", "scratch_offset", "bytes")
JOB = (
    "steps",
    "every",
    "moves",
    "ports",
    "stop",
)  # then `moves` rows of MOVE, then a row of PORT for each port
MOVE = ("from_output", "to_input", "size")  # positions in the buffers
# `last`: where outputs go after the last step
PORT = ("data", "world_stride", "element_stride", "time_stride", "last")
STACK = 4096  # bytes of buffers that go on the stack


def entry_points(lanes: Lanes, is_x86: bool) -> str:
    """The module's text, for processors of the x86 or the ARM kind."""
    parts = [
        packing(lanes),
        _aligned(),
        _environment(is_x86),
        _loop(),
        _many(lanes),
        _march(lanes),
    ]
    return "\n".join(parts)


def _word(name: str, base: str, words: tuple[str, ...], word: str, kind: str = "i64") -> str:
    """%name: a word of a plan or job."""
    order = " acquire, align 8" if kind.startswith("atomic") else ""
    return (
        f"  %{name}.at = getelementptr inbounds i64, ptr {base}, i64 {words.index(word)}\n"
        f"  %{name} = load {kind}, ptr %{name}.at{order}"
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
{_word("single", "%switch", SWITCH, "single", "atomic ptr")}
{_word("many", "%switch", SWITCH, "many", "atomic ptr")}
{_word("crowd", "%switch", SWITCH, "crowd")}
  %alone = icmp eq i64 %count, 1
  %plan = select i1 %alone, ptr %single, ptr %many
  %is_missing = icmp eq ptr %plan, null
  %is_crowd = icmp ugt i64 %count, %crowd
  %is_not_for_here = or i1 %is_missing, %is_crowd
  br i1 %is_not_for_here, label %failed, label %work
work:
{_word("way", "%plan", PLAN, "work", "ptr")}
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
  %room = add i64 %i.size, {slack(lanes)}
  %buffer1 = getelementptr inbounds {lanes.real}, ptr %buffer, i64 %room
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
    """Many steps of each block of worlds, with records on the way; and the functions that this calls."""
    parameters = "ptr %job, i64 %begin, i64 %count, ptr %plan"
    parts = [
        _with_buffers("march", parameters, "march_with"),
        _march_with(lanes, parameters),
        _read_ports(lanes),
        _write_ports(lanes),
        _move_state(lanes),
    ]
    return "".join(parts)


def _march_with(lanes: Lanes, parameters: str) -> str:
    """The steps of blocks of worlds, with buffers at hand."""
    return f"""
define internal void @march_with({parameters}, ptr %in) #0 {{
entry:
{_buffers()}
  %sizes = getelementptr inbounds i64, ptr %plan, i64 {len(PLAN)}
{_word("steps", "%job", JOB, "steps")}
{_word("every", "%job", JOB, "every")}
{_word("moves", "%job", JOB, "moves")}
{_word("ports", "%job", JOB, "ports", "ptr")}
  %stop_at = getelementptr inbounds i64, ptr %job, i64 {JOB.index("stop")}
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
  %time = phi i64 [ 0, %block ], [ %time1, %next_step ]
  %recorded = phi i64 [ 0, %block ], [ %recorded1, %next_step ]
  %wait = phi i64 [ 1, %block ], [ %wait1, %next_step ]
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
  %stop = load atomic i64, ptr %stop_at monotonic, align 8
  %goes_on = icmp eq i64 %stop, 0
  br i1 %goes_on, label %next_step, label %end
next_step:
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
  %room = add i64 %size, {slack(lanes)}
  %buffer1 = getelementptr inbounds {lanes.real}, ptr %buffer, i64 %room
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
