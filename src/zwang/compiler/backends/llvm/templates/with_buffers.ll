; @$name allocates the buffers on the stack or the heap and calls @$work with them.
; It returns false if there is no memory.
define i1 @$name($parameters) #1 {
entry:
$load_bytes
$load_allocate
$load_release
  %fits_stack = icmp ule i64 %bytes, $stack_bytes
  br i1 %fits_stack, label %stack, label %heap
stack:
  %stack_buffer = alloca i8, i64 %bytes, align 8
  %stack_aligned = call ptr @aligned(ptr %stack_buffer)
  %stack_environment = call i64 @enter_environment()
  call void @$work($parameters, ptr %stack_aligned)
  call void @restore_environment(i64 %stack_environment)
  ret i1 true
heap:
  %heap_buffer = call ptr %allocate(i64 %bytes)
  %is_null = icmp eq ptr %heap_buffer, null
  br i1 %is_null, label %failed, label %allocated
failed:
  ret i1 false
allocated:
  %heap_aligned = call ptr @aligned(ptr %heap_buffer)
  %heap_environment = call i64 @enter_environment()
  call void @$work($parameters, ptr %heap_aligned)
  call void @restore_environment(i64 %heap_environment)
  call void %release(ptr %heap_buffer)
  ret i1 true
}
