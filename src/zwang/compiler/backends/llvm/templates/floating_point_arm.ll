; The floating-point environment of ARM: control register FPCR and status register FPSR.
; FPCR = 0: round to nearest, subnormal numbers kept, all exceptions masked.
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
declare i64 @llvm.aarch64.get.fpsr()
declare void @llvm.aarch64.set.fpsr(i64)
define internal i64 @enter_environment() #0 {
  %control = call i64 @llvm.aarch64.get.fpcr()
  %flags = call i64 @llvm.aarch64.get.fpsr()
  call void @llvm.aarch64.set.fpcr(i64 0)
  %high = shl i64 %control, 32
  %both = or i64 %high, %flags
  ret i64 %both
}
define internal void @restore_environment(i64 %both) #0 {
  %control = lshr i64 %both, 32
  %flags = and i64 %both, 4294967295
  call void @llvm.aarch64.set.fpcr(i64 %control)
  call void @llvm.aarch64.set.fpsr(i64 %flags)
  ret void
}
