; Lane vectors to elements of a port; only the rows of existing worlds are written.
define internal void @unpack(ptr %source, i64 %outer, i64 %inner, i64 %count, i64 %worlds, ptr %target) #0 {
entry:
  br label %ready
ready:
$vectorised
single:
  %from = phi i64 [ $first_single ]
  br label %element
element:
  %k = phi i64 [ %from, %single ], [ %k1, %done ]
  %some = icmp ult i64 %k, %count
  br i1 %some, label %start, label %end
start:
  %shift = mul i64 %k, %inner
  %first = mul i64 %k, $width
  br label %world
world:
  %n = phi i64 [ 0, %start ], [ %n1, %world ]
  %lane = add i64 %first, %n
  %from_address = getelementptr inbounds $scalar, ptr %source, i64 %lane
  %x = load $scalar, ptr %from_address
  %far = mul i64 %n, %outer
  %both = add i64 %far, %shift
  %to_address = getelementptr i8, ptr %target, i64 %both
  store $scalar %x, ptr %to_address, align $real_bytes
  %n1 = add i64 %n, 1
  %more = icmp ult i64 %n1, %worlds
  br i1 %more, label %world, label %done
done:
  %k1 = add i64 %k, 1
  br label %element
end:
  ret void
}
