$thread_registers
  %before = mul i64 %ctaid, %ntid
  %world = add i64 %before, %tid
  %frame = alloca [$frame_bytes x i8], align 8
  %is_world = icmp ult i64 %world, %worlds
  br i1 %is_world, label %inside, label %outside
outside:
  ret void
inside:
