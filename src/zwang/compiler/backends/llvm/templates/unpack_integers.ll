; Lane vectors of small integers to elements of a port as `pack_integers` reads them.
define internal void @unpack_integers(ptr %source, i64 %inner, i64 %count, i64 %worlds, ptr %target) #0 {
entry:
  %is_full = icmp uge i64 %worlds, $width
  br label %element
element:
  %k = phi i64 [ 0, %entry ], [ %k1, %done ]
  %some = icmp ult i64 %k, %count
  br i1 %some, label %start, label %end
start:
  %shift = mul i64 %k, %inner
  %from = getelementptr inbounds $real, ptr %source, i64 %k
  %to = getelementptr i8, ptr %target, i64 %shift
  br i1 %is_full, label %block, label %world
block:
  %reals = load $real, ptr %from
  %integers = fptosi $real %reals to $int
  %shorts = trunc $int %integers to $short
  store $short %shorts, ptr %to, align 2
  br label %done
world:
  %n = phi i64 [ 0, %start ], [ %n1, %world ]
  %from_address = getelementptr inbounds $scalar, ptr %from, i64 %n
  %x = load $scalar, ptr %from_address
  %integer = fptosi $scalar %x to i16
  %to_address = getelementptr inbounds i16, ptr %to, i64 %n
  store i16 %integer, ptr %to_address
  %n1 = add i64 %n, 1
  %more = icmp ult i64 %n1, %worlds
  br i1 %more, label %world, label %done
done:
  %k1 = add i64 %k, 1
  br label %element
end:
  ret void
}
