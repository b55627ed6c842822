; Copy the state from the outputs of one step to the inputs of the next.
define internal void @copy_state(ptr %rows, i64 %copies, ptr %out, ptr %in) #0 {
entry:
  br label %row
row:
  %m = phi i64 [ 0, %entry ], [ %m1, %copied ]
  %some = icmp ult i64 %m, %copies
  br i1 %some, label %begin, label %end
begin:
  %number = mul i64 %m, $copy_fields
  %copy_row = getelementptr inbounds i64, ptr %rows, i64 %number
$load_from
$load_to
$load_size
  %source = getelementptr inbounds $real, ptr %out, i64 %from
  %target = getelementptr inbounds $real, ptr %in, i64 %to
  br label %element
element:
  %k = phi i64 [ 0, %begin ], [ %k1, %copy ]
  %has = icmp ult i64 %k, %size
  br i1 %has, label %copy, label %copied
copy:
  %a = getelementptr inbounds $real, ptr %source, i64 %k
  %b = getelementptr inbounds $real, ptr %target, i64 %k
  %x = load $real, ptr %a
  store $real %x, ptr %b
  %k1 = add i64 %k, 1
  br label %element
copied:
  %m1 = add i64 %m, 1
  br label %row
end:
  ret void
}
