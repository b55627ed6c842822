  br i1 %is_contiguous, label %chunks, label %scalar
chunks:
  %at = phi i64 [ 0, %ready ], [ %at1, %whole ]
  %left = sub i64 %count, %at
  %enough = icmp uge i64 %left, $width
  br i1 %enough, label %whole, label %rest
whole:
$addresses
$loads
$transposition
  %chunk = getelementptr inbounds $real, ptr %target, i64 %at
$stores
  %at1 = add i64 %at, $width
  br label %chunks
rest:
  %many = icmp ugt i64 %left, $few
  br i1 %many, label %partial, label %few_left
partial:
$mask
$partial_addresses
$partial_loads
$partial_transposition
  %part = getelementptr inbounds $real, ptr %target, i64 %at
$partial_stores
  br label %end
few_left:
  br label %scalar
scalar:
  %at_scalar = phi i64 [ 0, %ready ], [ %at, %few_left ]
  br label %single
