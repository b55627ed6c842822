; Pack the inputs of a block of worlds: all of them at the first step, later those that change with time.
define internal void @read_inputs(ptr %rows, i64 %count, i64 %first, i64 %worlds, i64 %time, ptr %in) #0 {
entry:
  %is_first = icmp eq i64 %time, 0
  br label %input
input:
  %p = phi i64 [ 0, %entry ], [ %p1, %done ]
  %some = icmp ult i64 %p, %count
  br i1 %some, label %row, label %end
row:
$transfer
  %changes = icmp ne i64 %time_stride, 0
  %is_read = or i1 %is_first, %changes
  br i1 %is_read, label %read, label %done
read:
  %time_offset = mul i64 %time, %time_stride
  %address = add i64 %start, %time_offset
  %source = inttoptr i64 %address to ptr
  %buffer = getelementptr inbounds $real, ptr %in, i64 %position
  %is_real = icmp eq i64 %element_bytes, $real_bytes
  br i1 %is_real, label %reals, label %integers
reals:
  call void @pack(ptr %source, i64 %world_stride, i64 %element_stride, i64 %size, i64 %worlds, ptr %buffer)
  br label %done
integers:
  call void @pack_integers(ptr %source, i64 %element_stride, i64 %size, i64 %worlds, ptr %buffer)
  br label %done
done:
  %p1 = add i64 %p, 1
  br label %input
end:
  ret void
}
