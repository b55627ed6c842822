; Elements of a port, %inner bytes apart, of worlds %outer bytes apart, to lane vectors.
define internal void @pack(ptr %source, i64 %outer, i64 %inner, i64 %count, i64 %worlds, ptr %target) #0 {
entry:
  %last = sub i64 %worlds, 1
  %is_contiguous = icmp eq i64 %inner, $real_bytes
  br label %ready
ready:
$vectorised
single:
  %from = phi i64 [ $first_single ]
  %some = icmp ult i64 %from, %count
  br i1 %some, label %element, label %end
element:
  %k = phi i64 [ %from, %single ], [ %k1, %element ]
  %shift = mul i64 %k, %inner
$gathered
  %address = getelementptr inbounds $real, ptr %target, i64 %k
  store $real %gathered, ptr %address
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %count
  br i1 %more, label %element, label %end
end:
  ret void
}
