; Pack the inputs of a block of worlds: all of them at the first step, later those that change with time.
define internal void @read_ports(ptr %ports, ptr %sizes, i64 %inputs, i64 %first, i64 %worlds,
                                i64 %time, ptr %in) #0 {
entry:
  %is_first = icmp eq i64 %time, 0
  br label %input
input:
  %p = phi i64 [ 0, %entry ], [ %p1, %done ]
  %buffer = phi ptr [ %in, %entry ], [ %buffer1, %done ]
  %some = icmp ult i64 %p, %inputs
  br i1 %some, label %row, label %end
row:
$port
  %changes = icmp ne i64 %time_stride, 0
  %is_read = or i1 %is_first, %changes
  br i1 %is_read, label %read, label %done
read:
  %time_offset = mul i64 %time, %time_stride
  %sum = add i64 %far, %time_offset
  %address = add i64 %data, %sum
  %source = inttoptr i64 %address to ptr
  call void @pack(ptr %source, i64 %world_stride, i64 %element_stride, i64 %size, i64 %worlds, ptr %buffer)
  br label %done
done:
  %padded = add i64 %size, $padding
  %buffer1 = getelementptr inbounds $real, ptr %buffer, i64 %padded
  %p1 = add i64 %p, 1
  br label %input
end:
  ret void
}
