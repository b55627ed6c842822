; The rollout kernel: all steps of each block of worlds, with records every few steps.
define internal void @one_rollout_with_buffers($parameters, ptr %in) #0 {
entry:
$buffers
$load_steps
$load_every
$load_transfers
  %stop_at = getelementptr inbounds i64, ptr %rollout, i64 $stop_field
  %end_world = add i64 %begin, %count
  %any = icmp ne i64 %count, 0
  br i1 %any, label %block, label %end
block:
  %first = phi i64 [ %begin, %entry ], [ %next, %finish ]
  %left = sub i64 %end_world, %first
  %is_tail = icmp ult i64 %left, $width
  %worlds = select i1 %is_tail, i64 %left, i64 $width
  call void @read_inputs(ptr %reads, i64 %read_count, i64 %first, i64 %worlds, i64 0, ptr %in)
  call void @write_outputs(ptr %befores, i64 %before_count, i64 %first, i64 %worlds, i64 0, ptr %in)
  %following = add i64 %first, $width
  %has_following = icmp ult i64 %following, %end_world
  br i1 %has_following, label %fetch, label %start
fetch:
  call void @prefetch_inputs(ptr %reads, i64 %read_count, i64 %following)
  br label %start
start:
  br label %step
step:
  %time = phi i64 [ 0, %start ], [ %time1, %next_step ]
  %recorded = phi i64 [ 0, %start ], [ %recorded1, %next_step ]
  %since_record = phi i64 [ 1, %start ], [ %since_record1, %next_step ]
  %is_first = icmp eq i64 %time, 0
  br i1 %is_first, label %run, label %update
update:
  call void @read_inputs(ptr %reads, i64 %read_count, i64 %first, i64 %worlds, i64 %time, ptr %in)
  call void @copy_state(ptr %copies, i64 %copy_count, ptr %out, ptr %in)
  br label %run
run:
  call void %body(ptr %in, ptr %out, ptr %frame)
  %is_due = icmp eq i64 %since_record, %every
  br i1 %is_due, label %record, label %stepped
record:
  call void @write_outputs(ptr %records, i64 %record_count, i64 %first, i64 %worlds, i64 %recorded, ptr %out)
  %recorded2 = add i64 %recorded, 1
  br label %stepped
stepped:
  %recorded1 = phi i64 [ %recorded, %run ], [ %recorded2, %record ]
  %since_record0 = phi i64 [ %since_record, %run ], [ 0, %record ]
  %since_record1 = add i64 %since_record0, 1
  %time1 = add i64 %time, 1
  %stop = load atomic i64, ptr %stop_at monotonic, align 8
  %continues = icmp eq i64 %stop, 0
  br i1 %continues, label %next_step, label %end
next_step:
  %more_steps = icmp ult i64 %time1, %steps
  br i1 %more_steps, label %step, label %finish
finish:
  call void @write_outputs(ptr %finals, i64 %final_count, i64 %first, i64 %worlds, i64 0, ptr %out)
  %next = add i64 %first, %worlds
  %more = icmp ult i64 %next, %end_world
  br i1 %more, label %block, label %end
end:
  ret void
}
