; @$name takes buffers on the stack, or large ones that are kept or new, and calls @$work with them.
; It returns false if there is no memory.
define i1 @$name($parameters) #1 {
entry:
$load_bytes
$load_kept
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
  %found = call { ptr, ptr } @take_buffer(ptr %kept, i64 %kept_count, ptr %kernel, i64 %bytes)
  %heap_buffer = extractvalue { ptr, ptr } %found, 0
  %word = extractvalue { ptr, ptr } %found, 1
  %is_null = icmp eq ptr %heap_buffer, null
  br i1 %is_null, label %failed, label %allocated
failed:
  ret i1 false
allocated:
  %heap_aligned = call ptr @aligned(ptr %heap_buffer)
  %heap_environment = call i64 @enter_environment()
  call void @$work($parameters, ptr %heap_aligned)
  call void @restore_environment(i64 %heap_environment)
  call void @return_buffer(ptr %heap_buffer, ptr %word, ptr %kernel)
  ret i1 true
}
