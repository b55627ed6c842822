; The next address that is aligned for the buffers.
define internal ptr @aligned(ptr %raw) #0 {
  %number = ptrtoint ptr %raw to i64
  %up = add i64 %number, $alignment_mask
  %rounded = and i64 %up, -$alignment
  %offset = sub i64 %rounded, %number
  %pointer = getelementptr i8, ptr %raw, i64 %offset
  ret ptr %pointer
}
attributes #0 = { nounwind "prefer-vector-width"="512" "no-stack-arg-probe" }
; of functions that are called from outside, where the stack has the alignment of the platform only
attributes #1 = { nounwind "prefer-vector-width"="512" "no-stack-arg-probe" "stackrealign" }
