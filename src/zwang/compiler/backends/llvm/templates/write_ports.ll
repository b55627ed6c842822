; Unpack the outputs of a block of worlds: the recorded ones into record %record or, after the last step
; (%is_last), the final ones into their arrays.
define internal void @write_ports(ptr %ports, ptr %sizes, i64 %inputs, i64 %outputs, i64 %first, i64 %worlds,
    i64 %record, i1 %is_last, ptr %out) #0 {
entry:
  %all = add i64 %inputs, %outputs
  br label %output
output:
  %p = phi i64 [ %inputs, %entry ], [ %p1, %done ]
  %buffer = phi ptr [ %out, %entry ], [ %buffer1, %done ]
  %some = icmp ult i64 %p, %all
  br i1 %some, label %row, label %end
row:
$port
  %base = select i1 %is_last, i64 %last, i64 %data
  %time_offset = mul i64 %record, %time_stride
  %outer = select i1 %is_last, i64 %last_world_stride, i64 %world_stride
  %inner = select i1 %is_last, i64 %last_element_stride, i64 %element_stride
  %last_far = mul i64 %first, %last_world_stride
  %record_far = add i64 %far, %time_offset
  %sum = select i1 %is_last, i64 %last_far, i64 %record_far
  %is_written = icmp ne i64 %base, 0
  br i1 %is_written, label %write, label %done
write:
  %address = add i64 %base, %sum
  %target = inttoptr i64 %address to ptr
  call void @unpack(ptr %buffer, i64 %outer, i64 %inner, i64 %size, i64 %worlds, ptr %target)
  br label %done
done:
  %buffer1 = getelementptr inbounds $real, ptr %buffer, i64 %size
  %p1 = add i64 %p, 1
  br label %output
end:
  ret void
}
