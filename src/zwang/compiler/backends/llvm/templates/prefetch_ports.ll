; Fetch the inputs of a block of worlds into the cache while the block before it is computed.
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
define internal void @prefetch_ports(ptr %ports, ptr %sizes, i64 %inputs, i64 %first) #0 {
entry:
  br label %input
input:
  %p = phi i64 [ 0, %entry ], [ %p1, %done ]
  %some = icmp ult i64 %p, %inputs
  br i1 %some, label %row, label %end
row:
$port
  %differs = icmp ne i64 %world_stride, 0
  %is_contiguous = icmp eq i64 %element_stride, $real_bytes
  %is_fetched = and i1 %differs, %is_contiguous
  br i1 %is_fetched, label %begin, label %done
begin:
  %bytes = mul i64 %size, $real_bytes
  %start = add i64 %data, %far
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
  call void @llvm.prefetch.p0(ptr %address, i32 0, i32 2, i32 1)
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
