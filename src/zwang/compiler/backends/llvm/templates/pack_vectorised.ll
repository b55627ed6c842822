  %is_next = icmp eq i64 %outer, $real_bytes
  %is_block = icmp eq i64 %worlds, $width
  %is_lane_major = and i1 %is_next, %is_block
  br i1 %is_lane_major, label %lane_major, label %rows
lane_major:
  %j = phi i64 [ 0, %ready ], [ %j1, %lane_vector ]
  %has = icmp ult i64 %j, %count
  br i1 %has, label %lane_vector, label %end
lane_vector:
  %lane_shift = mul i64 %j, %inner
  %in_port = getelementptr i8, ptr %source, i64 %lane_shift
  %in_buffer = getelementptr inbounds $real, ptr %target, i64 %j
  %vector = load $real, ptr %in_port, align $real_bytes
  store $real %vector, ptr %in_buffer
  %j1 = add i64 %j, 1
  br label %lane_major
rows:
$row_pointers
  br i1 %is_contiguous, label %chunks, label %scalar
chunks:
  %at = phi i64 [ 0, %rows ], [ %at1, %whole ]
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
few_left:
  br label %scalar
scalar:
  %at_scalar = phi i64 [ 0, %rows ], [ %at, %few_left ]
  br label %single
