; The inner loop of a NumPy universal function: it selects the kernel by the number of worlds and calls it.
; If there is no suitable kernel, or the call has too many worlds for one thread, it counts a failure.
define void @$name(ptr %args, ptr %dimensions, ptr %strides, ptr %dispatch) #1 {
entry:
  %count = load i64, ptr %dimensions
$load_one_world
$load_many_worlds
$load_max_worlds
  %is_one = icmp eq i64 %count, 1
  %kernel = select i1 %is_one, ptr %one_world, ptr %many_worlds
  %is_missing = icmp eq ptr %kernel, null
  %is_too_many = icmp ugt i64 %count, %max_worlds
  %is_rejected = or i1 %is_missing, %is_too_many
  br i1 %is_rejected, label %failed, label %work
work:
$load_function
  %succeeded = call i1 %function($parameters)
  br i1 %succeeded, label %end, label %failed
failed:
  %failures = getelementptr inbounds i64, ptr %dispatch, i64 $failures_field
  %before = atomicrmw add ptr %failures, i64 1 monotonic
  br label %end
end:
  ret void
}
