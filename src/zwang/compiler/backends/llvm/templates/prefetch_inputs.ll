; Fetch the inputs of a block of worlds into the cache while the block before it is computed. Those in the
; layout of lane vectors are fetched if the second-level cache does not hold all of them; otherwise it takes
; longer.
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
define internal void @prefetch_inputs(ptr %rows, i64 %count, i64 %first) #0 {
entry:
  br label %input
input:
  %p = phi i64 [ 0, %entry ], [ %p1, %done ]
  %some = icmp ult i64 %p, %count
  br i1 %some, label %row, label %end
row:
$transfer
  %differs = icmp ne i64 %world_stride, 0
  %is_contiguous = icmp eq i64 %element_stride, $real_bytes
  %is_fetched = and i1 %differs, %is_contiguous
  %is_lane_major = icmp eq i64 %world_stride, $real_bytes
  br i1 %is_lane_major, label %is_held, label %not_lane_major
is_held:
  %all_bytes = mul i64 %size, %element_stride
  %is_large = icmp ugt i64 %all_bytes, $cache_bytes
  br i1 %is_large, label %lane_major, label %done
not_lane_major:
  br i1 %is_fetched, label %begin, label %done
lane_major:
  %k = phi i64 [ 0, %is_held ], [ %k1, %lane_vector ]
  %has = icmp ult i64 %k, %size
  br i1 %has, label %lane_vector, label %done
lane_vector:
  %lane_shift = mul i64 %k, %element_stride
  %lane_start = add i64 %start, %lane_shift
  %lane_address = inttoptr i64 %lane_start to ptr
  call void @llvm.prefetch.p0(ptr %lane_address, i32 0, i32 3, i32 1)
  %k1 = add i64 %k, 1
  br label %lane_major
begin:
  %bytes = mul i64 %size, $real_bytes
  br label %world
world:
  %n = phi i64 [ 0, %begin ], [ %n1, %next_world ]
  %row_offset = mul i64 %n, %world_stride
  %row_start = add i64 %start, %row_offset
  br label %line
line:
  %at = phi i64 [ 0, %world ], [ %at1, %line ]
  %sum = add i64 %row_start, %at
  %address = inttoptr i64 %sum to ptr
  call void @llvm.prefetch.p0(ptr %address, i32 0, i32 3, i32 1)
  %at1 = add i64 %at, 64
  %more_lines = icmp ult i64 %at1, %bytes
  br i1 %more_lines, label %line, label %next_world
next_world:
  %n1 = add i64 %n, 1
  %more_worlds = icmp ult i64 %n1, $width
  br i1 %more_worlds, label %world, label %done
done:
  %p1 = add i64 %p, 1
  br label %input
end:
  ret void
}
