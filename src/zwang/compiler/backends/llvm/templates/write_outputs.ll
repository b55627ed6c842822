; Unpack outputs of a block of worlds into record %record of their arrays.
define internal void @write_outputs(ptr %rows, i64 %count, i64 %first, i64 %worlds, i64 %record,
                                   ptr %out) #0 {
entry:
  br label %output
output:
  %p = phi i64 [ 0, %entry ], [ %p1, %done ]
  %some = icmp ult i64 %p, %count
  br i1 %some, label %write, label %end
write:
$transfer
  %time_offset = mul i64 %record, %time_stride
  %address = add i64 %start, %time_offset
  %target = inttoptr i64 %address to ptr
  %buffer = getelementptr inbounds $real, ptr %out, i64 %position
  %is_real = icmp eq i64 %element_bytes, $real_bytes
  br i1 %is_real, label %reals, label %integers
reals:
  call void @unpack(ptr %buffer, i64 %world_stride, i64 %element_stride, i64 %size, i64 %worlds, ptr %target)
  br label %done
integers:
  call void @unpack_integers(ptr %buffer, i64 %element_stride, i64 %size, i64 %worlds, ptr %target)
  br label %done
done:
  %p1 = add i64 %p, 1
  br label %output
end:
  ret void
}
