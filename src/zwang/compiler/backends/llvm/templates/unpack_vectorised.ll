$row_pointers
  %is_contiguous = icmp eq i64 %inner, $real_bytes
  %is_full = icmp eq i64 %worlds, $width
  %is_vectorised = and i1 %is_contiguous, %is_full
  br i1 %is_vectorised, label %chunks, label %scalar
chunks:
  %at = phi i64 [ 0, %ready ], [ %at1, %whole ]
  %left = sub i64 %count, %at
  %enough = icmp uge i64 %left, $width
  br i1 %enough, label %whole, label %rest
whole:
  %chunk = getelementptr inbounds $real, ptr %source, i64 %at
$loads
$transposition
$addresses
$stores
  %at1 = add i64 %at, $width
  br label %chunks
rest:
  %many = icmp ugt i64 %left, $few
  br i1 %many, label %partial, label %few_left
partial:
  %part = getelementptr inbounds $real, ptr %source, i64 %at
$mask
$partial_loads
$partial_transposition
$partial_addresses
$partial_stores
  br label %end
few_left:
  br label %scalar
scalar:
  %at_scalar = phi i64 [ 0, %ready ], [ %at, %few_left ]
  br label %single
