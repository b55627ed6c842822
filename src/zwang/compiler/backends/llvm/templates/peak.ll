; Independent chains of fused multiply-adds in registers, for the measurement of the peak performance.
declare $real $fma($real, $real, $real)
define void @peak(i64 %iterations, ptr %out) "prefer-vector-width"="512" {
entry:
  br label %iteration
iteration:
  %n = phi i64 [ 0, %entry ], [ %n1, %iteration ]
$initial_values
$multiply_adds
  %n1 = add i64 %n, 1
  %more = icmp ult i64 %n1, %iterations
  br i1 %more, label %iteration, label %end
end:
$sums
  store $real $total, ptr %out, align $real_bytes
  ret void
}
