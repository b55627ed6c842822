; Elements of a port, %inner bytes apart, that are 16-bit integers, those of the worlds side by side, to lane
; vectors.
define internal void @pack_integers(ptr %source, i64 %inner, i64 %count, i64 %worlds, ptr %target) #0 {
entry:
  %last = sub i64 %worlds, 1
  %is_full = icmp uge i64 %worlds, $width
  br label %element
element:
  %k = phi i64 [ 0, %entry ], [ %k1, %done ]
  %some = icmp ult i64 %k, %count
  br i1 %some, label %start, label %end
start:
  %shift = mul i64 %k, %inner
  %from = getelementptr i8, ptr %source, i64 %shift
  %to = getelementptr inbounds $real, ptr %target, i64 %k
  br i1 %is_full, label %block, label %world
block:
  %integers = load $short, ptr %from, align 2
  %reals = sitofp $short %integers to $real
  store $real %reals, ptr %to
  br label %done
world:
  %n = phi i64 [ 0, %start ], [ %n1, %world ]
  %exists = icmp ult i64 %n, %last
  %own = select i1 %exists, i64 %n, i64 %last
  %from_address = getelementptr inbounds i16, ptr %from, i64 %own
  %integer = load i16, ptr %from_address
  %x = sitofp i16 %integer to $scalar
  %to_address = getelementptr inbounds $scalar, ptr %to, i64 %n
  store $scalar %x, ptr %to_address
  %n1 = add i64 %n, 1
  %more = icmp ult i64 %n1, $width
  br i1 %more, label %world, label %done
done:
  %k1 = add i64 %k, 1
  br label %element
end:
  ret void
}
