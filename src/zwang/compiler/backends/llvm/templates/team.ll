; A team of threads: a caller and its workers, which share the worlds of a job. The row %team of 64-bit words
; is described in team_functions.py.
$declare_pause

; The present time in nanoseconds. The clock may be set: callers compare unsigned differences with limits.
define internal i64 @now(ptr %team) #0 {
entry:
  %time = alloca [2 x i64], align 8
$load_clock
  %base = call i32 %clock(ptr %time, i32 1)
  %seconds = load i64, ptr %time
  %nanoseconds.at = getelementptr inbounds i64, ptr %time, i64 1
  %nanoseconds = load i32, ptr %nanoseconds.at
  %whole = mul i64 %seconds, 1000000000
  %fraction = zext i32 %nanoseconds to i64
  %sum = add i64 %whole, %fraction
  ret i64 %sum
}

; Process chunks of worlds as member %me: those of its own segment, then those left in the other segments.
; Each is half of what is left of the segment, in multiples of the smallest chunk.
define internal void @process(ptr %team, i64 %me) #0 {
entry:
  %state.at = getelementptr inbounds i64, ptr %team, i64 $state
  %failed.at = getelementptr inbounds i64, ptr %team, i64 $failed_field
$load_function
$load_context
$load_kernel
$load_chunk
$load_members
  br label %segment
segment:
  %k = phi i64 [ 0, %entry ], [ %k1, %exhausted ]
  %sum = add i64 %me, %k
  %number = urem i64 %sum, %members
  %word = mul i64 %number, $member_words
  %first = getelementptr inbounds i64, ptr %team, i64 $member_start
  %next.at = getelementptr inbounds i64, ptr %first, i64 %word
  %end.at = getelementptr inbounds i64, ptr %next.at, i64 1
  %end = load i64, ptr %end.at
  br label %claim
claim:
  %now = load atomic i64, ptr %next.at monotonic, align 8
  br label %look
look:
  %begin = phi i64 [ %now, %claim ], [ %found, %take ]
  %left = sub i64 %end, %begin
  %is_left = icmp sgt i64 %left, 0
  br i1 %is_left, label %take, label %exhausted
take:
  %half = lshr i64 %left, 1
  %rest = urem i64 %half, %chunk
  %part = sub i64 %half, %rest
  %is_part = icmp ne i64 %part, 0
  %wanted = select i1 %is_part, i64 %part, i64 %chunk
  %is_tail = icmp slt i64 %left, %wanted
  %count = select i1 %is_tail, i64 %left, i64 %wanted
  %after = add i64 %begin, %count
  %exchange = cmpxchg ptr %next.at, i64 %begin, i64 %after monotonic monotonic
  %found = extractvalue { i64, i1 } %exchange, 0
  %is_claimed = extractvalue { i64, i1 } %exchange, 1
  br i1 %is_claimed, label %compute, label %look
compute:
  %succeeded = call i1 %function(ptr %context, i64 %begin, i64 %count, ptr %kernel)
  br i1 %succeeded, label %computed, label %fail
fail:
  store atomic i64 1, ptr %failed.at monotonic, align 8
  br label %computed
computed:
  %state = load atomic i64, ptr %state.at monotonic, align 8
  %open = and i64 %state, $open
  %is_open = icmp ne i64 %open, 0
  br i1 %is_open, label %claim, label %end_of_job
exhausted:
  %k1 = add i64 %k, 1
  %others = icmp ult i64 %k1, %members
  br i1 %others, label %segment, label %end_of_job
end_of_job:
  ret void
}

; Let no further worker begin with the job; returns the state before.
define i64 @close_job(ptr %team) #0 {
entry:
  %state.at = getelementptr inbounds i64, ptr %team, i64 $state
  %state = atomicrmw and ptr %state.at, i64 $not_open acq_rel
  ret i64 %state
}

; The life of worker %number: it spins for a job for a limited time, then sleeps until it is woken.
define void @worker(ptr %team, i64 %number) #0 {
entry:
  %state.at = getelementptr inbounds i64, ptr %team, i64 $state
  %disturbed.at = getelementptr inbounds i64, ptr %team, i64 $disturbed_field
  %workers.at = getelementptr inbounds i64, ptr %team, i64 $workers_field
  %spin.at = getelementptr inbounds i64, ptr %team, i64 $spin_field
  %word = mul i64 %number, $member_words
  %first = getelementptr inbounds i64, ptr %team, i64 $asleep_start
  %asleep.at = getelementptr inbounds i64, ptr %first, i64 %word
  %lock.at = getelementptr inbounds i64, ptr %asleep.at, i64 1
  %lock = load ptr, ptr %lock.at
$load_acquire
$load_release
$load_done
  br label %watch
watch:
  %spin = load atomic i64, ptr %spin.at monotonic, align 8
  %start = call i64 @now(ptr %team)
  br label %look
look:
  %before = phi i64 [ %start, %watch ], [ %time, %spinning ]
  br label %try
try:
  %tries = phi i64 [ 0, %look ], [ %tries1, %again ]
  %state = load atomic i64, ptr %state.at acquire, align 8
  %workers = load atomic i64, ptr %workers.at monotonic, align 8
  %open = and i64 %state, $open_or_ended
  %is_open = icmp ne i64 %open, 0
  %is_wanted = icmp ult i64 %number, %workers
  %has_job = and i1 %is_open, %is_wanted
  br i1 %has_job, label %found, label %idle
idle:
  $pause
  %tries1 = add i64 %tries, 1
  %more_tries = icmp ult i64 %tries1, $tries
  br i1 %more_tries, label %again, label %look_at_clock
again:
  br label %try
look_at_clock:
  %time = call i64 @now(ptr %team)
  %elapsed = sub i64 %time, %start
  %interval = sub i64 %time, %before
  %is_late = icmp uge i64 %elapsed, %spin
  %is_undisturbed = icmp ult i64 %interval, $disturbance
  br i1 %is_undisturbed, label %calm, label %disturbed
disturbed:
  %reported = atomicrmw add ptr %disturbed.at, i64 %interval monotonic
  br label %sleep
calm:
  br i1 %is_late, label %sleep, label %spinning
spinning:
  br label %look
found:
  %ended = and i64 %state, $ended
  %is_ended = icmp ne i64 %ended, 0
  br i1 %is_ended, label %end, label %join
join:
  %joined = add i64 %state, 1
  %exchange = cmpxchg ptr %state.at, i64 %state, i64 %joined acq_rel monotonic
  %has_joined = extractvalue { i64, i1 } %exchange, 1
  br i1 %has_joined, label %work, label %watch
work:
$load_first_member
  %me = add i64 %number, %first_member
  call void @process(ptr %team, i64 %me)
  %closed = call i64 @close_job(ptr %team)
  %last_state = atomicrmw sub ptr %state.at, i64 1 acq_rel
  %leaves_as_last = icmp eq i64 %last_state, $last_with_waiting
  br i1 %leaves_as_last, label %report, label %watch
report:
  call void %release(ptr %done)
  br label %watch
sleep:
  store atomic i64 1, ptr %asleep.at seq_cst, align 8
  %state_now = load atomic i64, ptr %state.at seq_cst, align 8
  %workers_now = load atomic i64, ptr %workers.at monotonic, align 8
  %open_now = and i64 %state_now, $open_or_ended
  %is_open_now = icmp ne i64 %open_now, 0
  %is_wanted_now = icmp ult i64 %number, %workers_now
  %has_job_now = and i1 %is_open_now, %is_wanted_now
  br i1 %has_job_now, label %stay, label %wait
stay:
  %was_asleep = atomicrmw xchg ptr %asleep.at, i64 0 seq_cst
  %is_own = icmp ne i64 %was_asleep, 0
  br i1 %is_own, label %watch, label %wait
wait:
  %acquired = call i32 %acquire(ptr %lock, i32 1)
  br label %watch
end:
  ret void
}

; Divide the worlds of the job among the members, let the workers begin and wake those that sleep.
define void @publish(ptr %team, i64 %flags) #0 {
entry:
  %state.at = getelementptr inbounds i64, ptr %team, i64 $state
$load_count
$load_lanes
$load_members
$load_workers
$load_release
  %rounded = add i64 %count, %lanes
  %below = sub i64 %rounded, 1
  %blocks = udiv i64 %below, %lanes
  br label %segment
segment:
  %m = phi i64 [ 0, %entry ], [ %m1, %segment ]
  %start = phi i64 [ 0, %entry ], [ %end, %segment ]
  %m1 = add i64 %m, 1
  %share = mul i64 %blocks, %m1
  %last_block = udiv i64 %share, %members
  %last_world = mul i64 %last_block, %lanes
  %is_over = icmp ugt i64 %last_world, %count
  %end = select i1 %is_over, i64 %count, i64 %last_world
  %word = mul i64 %m, $member_words
  %segments = getelementptr inbounds i64, ptr %team, i64 $member_start
  %next.at = getelementptr inbounds i64, ptr %segments, i64 %word
  %end.at = getelementptr inbounds i64, ptr %next.at, i64 1
  store i64 %start, ptr %next.at
  store i64 %end, ptr %end.at
  %more_members = icmp ult i64 %m1, %members
  br i1 %more_members, label %segment, label %open
open:
  %state = or i64 %flags, $open
  %old = atomicrmw xchg ptr %state.at, i64 %state seq_cst
  br label %worker
worker:
  %w = phi i64 [ 0, %open ], [ %w1, %next_worker ]
  %has_worker = icmp ult i64 %w, %workers
  br i1 %has_worker, label %look, label %end_of_workers
look:
  %worker_word = mul i64 %w, $member_words
  %first = getelementptr inbounds i64, ptr %team, i64 $asleep_start
  %asleep.at = getelementptr inbounds i64, ptr %first, i64 %worker_word
  %asleep = load atomic i64, ptr %asleep.at seq_cst, align 8
  %w1 = add i64 %w, 1
  %sleeps = icmp ne i64 %asleep, 0
  br i1 %sleeps, label %wake, label %next_worker
wake:
  %was_asleep = atomicrmw xchg ptr %asleep.at, i64 0 seq_cst
  %is_woken = icmp ne i64 %was_asleep, 0
  br i1 %is_woken, label %post, label %next_worker
post:
  %lock.at = getelementptr inbounds i64, ptr %asleep.at, i64 1
  %lock = load ptr, ptr %lock.at
  call void %release(ptr %lock)
  br label %next_worker
next_worker:
  br label %worker
end_of_workers:
  ret void
}

; Do a job together with the workers; returns when no worker uses the job any more.
define void @share(ptr %team) #0 {
entry:
  %state.at = getelementptr inbounds i64, ptr %team, i64 $state
$load_acquire
$load_done
  call void @publish(ptr %team, i64 0)
  call void @process(ptr %team, i64 0)
  %closed = call i64 @close_job(ptr %team)
  br label %wait
wait:
  %start = call i64 @now(ptr %team)
  br label %look
look:
  br label %try
try:
  %tries = phi i64 [ 0, %look ], [ %tries1, %again ]
  %state = load atomic i64, ptr %state.at acquire, align 8
  %inside = and i64 %state, $inside
  %is_busy = icmp ne i64 %inside, 0
  br i1 %is_busy, label %idle, label %end
idle:
  $pause
  %tries1 = add i64 %tries, 1
  %more_tries = icmp ult i64 %tries1, $tries
  br i1 %more_tries, label %again, label %look_at_clock
again:
  br label %try
look_at_clock:
  %time = call i64 @now(ptr %team)
  %elapsed = sub i64 %time, %start
  %is_patient = icmp ult i64 %elapsed, $patience
  br i1 %is_patient, label %look, label %sleep
sleep:
  %before = atomicrmw or ptr %state.at, i64 $waiting acq_rel
  %inside_before = and i64 %before, $inside
  %must_wait = icmp ne i64 %inside_before, 0
  br i1 %must_wait, label %block, label %end
block:
  %acquired = call i32 %acquire(ptr %done, i32 1)
  br label %wait
end:
  ret void
}

; Let the workers return: all of those that there are.
define void @dismiss(ptr %team) #0 {
entry:
  %state.at = getelementptr inbounds i64, ptr %team, i64 $state
  %workers.at = getelementptr inbounds i64, ptr %team, i64 $workers_field
$load_capacity
$load_release
  store atomic i64 %capacity, ptr %workers.at monotonic, align 8
  %state = atomicrmw or ptr %state.at, i64 $ended seq_cst
  br label %worker
worker:
  %w = phi i64 [ 0, %entry ], [ %w1, %next_worker ]
  %has_worker = icmp ult i64 %w, %capacity
  br i1 %has_worker, label %look, label %end
look:
  %worker_word = mul i64 %w, $member_words
  %first = getelementptr inbounds i64, ptr %team, i64 $asleep_start
  %asleep.at = getelementptr inbounds i64, ptr %first, i64 %worker_word
  %was_asleep = atomicrmw xchg ptr %asleep.at, i64 0 seq_cst
  %w1 = add i64 %w, 1
  %is_woken = icmp ne i64 %was_asleep, 0
  br i1 %is_woken, label %post, label %next_worker
post:
  %lock.at = getelementptr inbounds i64, ptr %asleep.at, i64 1
  %lock = load ptr, ptr %lock.at
  call void %release(ptr %lock)
  br label %next_worker
next_worker:
  br label %worker
end:
  ret void
}

attributes #0 = { nounwind }
