; The floating-point environment of x86: control and status register MXCSR.
; 8064 = 0x1F80: round to nearest, subnormal numbers kept, all exceptions masked, no flag set.
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define internal i64 @enter_environment() #0 {
  %register = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %register)
  %old = load i32, ptr %register
  store i32 8064, ptr %register
  call void @llvm.x86.sse.ldmxcsr(ptr %register)
  %wide = zext i32 %old to i64
  ret i64 %wide
}
define internal void @restore_environment(i64 %old) #0 {
  %register = alloca i32
  %word = trunc i64 %old to i32
  store i32 %word, ptr %register
  call void @llvm.x86.sse.ldmxcsr(ptr %register)
  ret void
}
