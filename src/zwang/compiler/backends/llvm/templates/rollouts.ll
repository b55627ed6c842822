; A rollout and those that follow it, for the same worlds; false if there was no memory.
define i1 @rollout($parameters) #1 {
entry:
  br label %run
run:
  %row = phi ptr [ %rollout, %entry ], [ %then, %next ]
  %kernel_of_row = phi ptr [ %kernel, %entry ], [ %then_kernel, %next ]
  %succeeded = call i1 @one_rollout(ptr %row, i64 %begin, i64 %count, ptr %kernel_of_row)
  br i1 %succeeded, label %ended, label %end
ended:
  %stop_at = getelementptr inbounds i64, ptr %row, i64 $stop_field
  %stop = load atomic i64, ptr %stop_at monotonic, align 8
$load_then
$load_then_kernel
  %continues = icmp eq i64 %stop, 0
  %follows = icmp ne ptr %then, null
  %goes_on = and i1 %continues, %follows
  br i1 %goes_on, label %next, label %end
next:
  br label %run
end:
  ret i1 %succeeded
}
