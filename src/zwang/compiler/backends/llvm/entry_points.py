"""The LLVM functions around a program's body: they transfer arrays in memory to lane vectors and back.

They depend on the lanes only and not on the program, whose body they call through a pointer:

    ufunc_loop(args, dimensions, strides, dispatch)   inner loop of a NumPy universal function
    rollout_loop(args, dimensions, strides, dispatch) inner loop of one that computes a rollout
    batch(args, dimensions, strides, kernel, dispatch)    evaluates the body of this kernel for many worlds
    rollout_batch(args, ..., kernel, dispatch)        the rollout of a row DISPATCH + ROLLOUT + OPERAND ...
    rollout(rollout, first, count, kernel)            computes many steps in one call, and then the rollout in
                                                      the field `then`; between steps the state stays in lane
                                                      vectors. It returns early, without the final state, when
                                                      the field `stop` is set

The last block of worlds is filled with copies of its last world, so that every world is processed by the same
instructions whatever the number of worlds. A kernel is described by a row of 64-bit words: the fields
`KERNEL`, then the sizes of all input and output ports. A rollout and a dispatch table are rows of 64-bit
words too.

The inner loops select a kernel by the number of worlds. They check the conditions for a direct call and
count a failure in the dispatch table if these are not met, so their caller need not inspect the arguments.
All other functions return whether there was memory for the buffers.

While the body runs, rounding is to nearest and subnormal numbers are kept, whatever the caller's environment.
It is restored afterwards, floating-point flags included, because branches that are not taken would raise
flags.
"""

from __future__ import annotations

from zwang.compiler.backends.llvm.lanes import Lanes
from zwang.compiler.backends.llvm.packing import packing_functions
from zwang.compiler.backends.llvm.template_files import fill_template
from zwang.compiler.backends.llvm.writer import ALIGNED_STACK, ALIGNMENT

# Dispatch table: kernels for one world and for many (0 if there is none), the largest number of worlds of
# a direct call, and the number of calls that were rejected.
DISPATCH = ("one_world", "many_worlds", "max_worlds", "failures")
# `kept` is the address of `kept_count` words with the addresses of buffers; 0 while a call uses one.
KERNEL = (
    "batch", "rollout_batch", "body", "allocate", "release", "kept", "kept_count",
    "inputs", "outputs", "out_offset", "frame_offset", "bytes",
)  # fmt: skip
# Description of a rollout. `copies` is the address of rows of STATE_COPY; `reads` (inputs), `befores` (copies
# of inputs before the first step), `records` (outputs every few steps) and `finals` (outputs after the last
# step) are those of rows of TRANSFER. `then` is the address of the rollout that follows, or 0. `kept`: as in
# KERNEL; without buffers of its own (0) a rollout takes those of the kernel.
ROLLOUT = (
    "steps", "every", "stop", "then", "then_kernel", "kept", "kept_count",
    "copies", "copy_count", "reads", "read_count",
    "befores", "before_count", "records", "record_count", "finals", "final_count",
)  # fmt: skip
STATE_COPY = ("from_output", "to_input", "size")  # positions in the buffers
# Elements of an array, those of one port or of several in a row, from `position` of the buffer on.
# element_bytes: of a real, or of a 16-bit integer.
TRANSFER = ("data", "world_stride", "element_stride", "time_stride", "size", "position", "element_bytes")
# An operand of a universal function for a rollout: whether it has an axis of time before that of its elements
OPERAND = ("has_time", "size", "position")
STACK_BYTES = 4096  # largest size of buffers on the stack
CACHE_BYTES = 1 << 20  # of states that a second-level cache holds

BATCH_PARAMETERS = "ptr %args, ptr %dimensions, ptr %strides, ptr %kernel, ptr %dispatch"
ROLLOUT_PARAMETERS = "ptr %rollout, i64 %begin, i64 %count, ptr %kernel"


def entry_points(lanes: Lanes, is_x86: bool) -> str:
    """The LLVM text of the functions above, for x86 processors or for ARM."""
    parts = [
        packing_functions(lanes),
        fill_template("aligned", alignment=ALIGNMENT, alignment_mask=ALIGNMENT - 1),
        fill_template("floating_point_x86" if is_x86 else "floating_point_arm"),
        _inner_loop("ufunc_loop", "batch"),
        _inner_loop("rollout_loop", "rollout_batch"),
        _with_buffers("batch", BATCH_PARAMETERS, _load_kept("kept", "%kernel", KERNEL)),
        _batch(lanes),
        _with_buffers("one_rollout", ROLLOUT_PARAMETERS, _load_kept_of_rollout()),
        _rollout(lanes),
        _rollout_batch(lanes),
        fill_template(
            "prefetch_inputs",
            transfer=_transfer("%p"),
            width=lanes.width,
            real_bytes=lanes.scalar_bytes,
            cache_bytes=CACHE_BYTES,
        ),
        fill_template(
            "read_inputs", transfer=_transfer("%p"), real=lanes.real, real_bytes=lanes.scalar_bytes
        ),
        fill_template(
            "write_outputs", transfer=_transfer("%p"), real=lanes.real, real_bytes=lanes.scalar_bytes
        ),
        _copy_state(lanes),
        fill_template(  # before the functions that transfer, it would shift these and make them slower
            "rollouts",
            parameters=ROLLOUT_PARAMETERS,
            stop_field=ROLLOUT.index("stop"),
            load_then=_load_field("then", "%row", ROLLOUT, "then", "ptr"),
            load_then_kernel=_load_field("then_kernel", "%row", ROLLOUT, "then_kernel", "ptr"),
        ),
        fill_template(
            "kept_buffers",
            load_allocate=_load_field("allocate", "%kernel", KERNEL, "allocate", "ptr"),
            load_release=_load_field("release", "%kernel", KERNEL, "release", "ptr"),
        ),
    ]
    return "\n\n".join(parts) + "\n" + ALIGNED_STACK


def _load_field(name: str, base: str, fields: tuple[str, ...], field: str, kind: str = "i64") -> str:
    """Instructions that load a field of a row of words into %name."""
    order = " acquire, align 8" if kind.startswith("atomic") else ""
    return (
        f"  %{name}.at = getelementptr inbounds i64, ptr {base}, i64 {fields.index(field)}\n"
        f"  %{name} = load {kind}, ptr %{name}.at{order}"
    )


def _load_kept(name: str, base: str, fields: tuple[str, ...]) -> str:
    """Instructions that load `kept` and `kept_count` of a row into %name and %name_count."""
    count = _load_field(f"{name}_count", base, fields, "kept_count")
    return _load_field(name, base, fields, "kept", "ptr") + "\n" + count


def _load_kept_of_rollout() -> str:
    """Instructions that load those of a rollout, or of its kernel if it has none."""
    return "\n".join(
        [
            _load_kept("own", "%rollout", ROLLOUT),
            _load_kept("common", "%kernel", KERNEL),
            "  %has_own = icmp ne ptr %own, null",
            "  %kept = select i1 %has_own, ptr %own, ptr %common",
            "  %kept_count = select i1 %has_own, i64 %own_count, i64 %common_count",
        ]
    )


def _with_buffers(name: str, parameters: str, load_kept: str) -> str:
    """The function `name`, which takes its buffers and calls `name`_with_buffers."""
    return fill_template(
        "with_buffers",
        name=name,
        work=f"{name}_with_buffers",
        parameters=parameters,
        stack_bytes=STACK_BYTES,
        load_bytes=_load_field("bytes", "%kernel", KERNEL, "bytes"),
        load_kept=load_kept,
    )


def _inner_loop(name: str, work: str) -> str:
    return fill_template(
        "inner_loop",
        name=name,
        load_one_world=_load_field("one_world", "%dispatch", DISPATCH, "one_world", "atomic ptr"),
        load_many_worlds=_load_field("many_worlds", "%dispatch", DISPATCH, "many_worlds", "atomic ptr"),
        load_max_worlds=_load_field("max_worlds", "%dispatch", DISPATCH, "max_worlds"),
        load_function=_load_field("function", "%kernel", KERNEL, work, "ptr"),
        parameters=BATCH_PARAMETERS,
        failures_field=DISPATCH.index("failures"),
    )


def _batch(lanes: Lanes) -> str:
    return fill_template(
        "batch",
        parameters=BATCH_PARAMETERS,
        buffers=_buffers(),
        kernel_fields=len(KERNEL),
        width=lanes.width,
        real=lanes.real,
        input_port=fill_template("batch_port", x="i", port="%p"),
        output_port=fill_template("batch_port", x="o", port="%r"),
    )


def _buffers() -> str:
    """Instructions that load the kernel's body and compute the addresses of its output buffer and stack
    frame.
    """
    return "\n".join(
        [
            _load_field("body", "%kernel", KERNEL, "body", "ptr"),
            _load_field("inputs", "%kernel", KERNEL, "inputs"),
            _load_field("outputs", "%kernel", KERNEL, "outputs"),
            _load_field("out_offset", "%kernel", KERNEL, "out_offset"),
            _load_field("frame_offset", "%kernel", KERNEL, "frame_offset"),
            "  %out = getelementptr inbounds i8, ptr %in, i64 %out_offset",
            "  %frame = getelementptr inbounds i8, ptr %in, i64 %frame_offset",
        ]
    )


def _rollout(lanes: Lanes) -> str:
    return fill_template(
        "rollout",
        parameters=ROLLOUT_PARAMETERS,
        buffers=_buffers(),
        load_steps=_load_field("steps", "%rollout", ROLLOUT, "steps"),
        load_every=_load_field("every", "%rollout", ROLLOUT, "every"),
        load_transfers="\n".join(
            _load_field(name, "%rollout", ROLLOUT, name, "i64" if name.endswith("count") else "ptr")
            for name in ROLLOUT[ROLLOUT.index("copies") :]
        ),
        stop_field=ROLLOUT.index("stop"),
        width=lanes.width,
    )


def _rollout_batch(lanes: Lanes) -> str:
    fields = "\n".join(
        f"  %from{k} = getelementptr inbounds i64, ptr %rollout, i64 {k}\n"
        f"  %field{k} = load i64, ptr %from{k}\n"
        f"  %to{k} = getelementptr inbounds i64, ptr %filled, i64 {k}\n"
        f"  store i64 %field{k}, ptr %to{k}"
        for k in range(len(ROLLOUT))
    )
    stores = "\n".join(
        f"  %{name}.to = getelementptr inbounds i64, ptr %row, i64 {k}\n  store i64 %{name}, ptr %{name}.to"
        for k, name in enumerate(TRANSFER)
    )
    return fill_template(
        "rollout_batch",
        parameters=BATCH_PARAMETERS,
        dispatch_fields=len(DISPATCH),
        rollout_fields=len(ROLLOUT),
        transfer_fields=len(TRANSFER),
        operand_fields=len(OPERAND),
        copy_fields=fields,
        inputs=f"%field{ROLLOUT.index('read_count')}",
        outputs=f"%field{ROLLOUT.index('record_count')}",
        reads=f"%to{ROLLOUT.index('reads')}",
        records=f"%to{ROLLOUT.index('records')}",
        load_operand="\n".join(_load_field(name, "%operand", OPERAND, name) for name in OPERAND),
        real_bytes=lanes.scalar_bytes,
        store_transfer=stores,
    )


def _transfer(number: str) -> str:
    """Instructions that load a row of TRANSFER, and compute the offset of the first world of the block."""
    return "\n".join(
        [
            f"  %row_number = mul i64 {number}, {len(TRANSFER)}",
            "  %transfer = getelementptr inbounds i64, ptr %rows, i64 %row_number",
            *(_load_field(name, "%transfer", TRANSFER, name) for name in TRANSFER),
            "  %far = mul i64 %first, %world_stride",
            "  %start = add i64 %data, %far",
        ]
    )


def _copy_state(lanes: Lanes) -> str:
    return fill_template(
        "copy_state",
        copy_fields=len(STATE_COPY),
        load_from=_load_field("from", "%copy_row", STATE_COPY, "from_output"),
        load_to=_load_field("to", "%copy_row", STATE_COPY, "to_input"),
        load_size=_load_field("size", "%copy_row", STATE_COPY, "size"),
        real=lanes.real,
    )
