"""The LLVM functions of a team of threads: a caller, and workers that share the worlds of its call.

    worker(team, number)    the life of a worker thread
    share(team)             does the job in the row TEAM together with the workers
    publish(team, flags)    lets the workers do it, without the caller
    close_job(team)         lets no worker begin any more; returns the state before
    dismiss(team)           lets all workers return

A team is a row of 64-bit words: the fields TEAM, the state, and for each member the words of its segment of
worlds and of its thread. They lie so far from one another that two members do not write to one cache line.

A job is the call of `function(context, begin, count, kernel)` for all worlds, in chunks. Each member claims
chunks of its own segment by an atomic counter, from step to step mostly the same worlds, whose data are in
the cache of its core; then it claims those that are left in the other segments. A chunk is half of what is
left, so that there are few, and the last ones are small. The state counts the workers
that have joined the job, which they do while it is open. When no chunk is left it is closed, and the caller
waits for those who are inside: a worker that comes late finds the job closed and touches nothing.

After a job, a worker looks for the next one for `spin` nanoseconds, then it sleeps on a lock. If the clock
advances by a jump between two looks, another program has used the core: the worker adds the jump to
`disturbed`, and sleeps. Locks are those of Python's C interface, which may be used without the interpreter.
"""

from __future__ import annotations

from zwang.compiler.backends.llvm.template_files import fill_template

LINE = 16  # words that lie in two cache lines, which processors fetch together
TEAM = (
    "function", "context", "kernel", "count", "lanes", "chunk", "members", "workers", "first_member", "spin",
    "disturbed", "failed", "capacity", "clock", "acquire", "release", "done",
)  # fmt: skip
STATE = 2 * LINE
SEGMENTS = 3 * LINE  # (next world, end) of the first member
THREADS = 4 * LINE  # (whether it is asleep, lock) of the first worker
MEMBER = 2 * LINE  # words from one member to the next
# The state: the number of workers in the job, and these flags.
INSIDE, OPEN, WAITING, ENDED = 2**32 - 1, 2**32, 2**33, 2**34
TRIES = 32  # looks for a job between two looks at the clock
DISTURBANCE = 20_000  # nanoseconds between two looks at the clock that only a pause of the thread takes
PATIENCE = 50_000  # nanoseconds for which the caller waits for the last worker before it sleeps
ADDRESSES = ("function", "context", "kernel", "clock", "acquire", "release", "done")


def team_functions(is_x86: bool) -> str:
    """The LLVM text of the functions above, for x86 processors or for ARM."""
    pause = "void @llvm.x86.sse2.pause()" if is_x86 else "void @llvm.aarch64.hint(i32 {})"
    loads = {
        f"load_{name}": f"  %{name}.field = getelementptr inbounds i64, ptr %team, i64 {number}\n"
        f"  %{name} = load {'ptr' if name in ADDRESSES else 'i64'}, ptr %{name}.field"
        for number, name in enumerate(TEAM)
    }
    return fill_template(
        "team",
        declare_pause="declare " + pause.format(""),
        pause="call " + pause.format("1"),  # "yield" on ARM
        **loads,
        **{f"{name}_field": TEAM.index(name) for name in ("disturbed", "failed", "spin", "workers")},
        state=STATE,
        member_start=SEGMENTS,
        asleep_start=THREADS,
        member_words=MEMBER,
        open=OPEN,
        not_open=~OPEN,
        ended=ENDED,
        open_or_ended=OPEN | ENDED,
        inside=INSIDE,
        waiting=WAITING,
        last_with_waiting=WAITING | 1,
        tries=TRIES,
        disturbance=DISTURBANCE,
        patience=PATIENCE,
    )
