; A handler of XLA's foreign function interface for one compiled function. It calls the inner loop of the
; function on the buffers of the frame. A query of the interface's version, and calls for which the loop has
; no kernel yet or too many worlds, go to the general handler.
define ptr @handle(ptr %frame) {
entry:
  %extension.at = getelementptr inbounds i8, ptr %frame, i64 $extension
  %extension = load ptr, ptr %extension.at
  %is_call = icmp eq ptr %extension, null
  br i1 %is_call, label %call, label %general
call:
  %args = alloca [$ports x ptr]
  %steps = alloca [$twice x i64]
  %dimensions = alloca i64
  %arguments.at = getelementptr inbounds i8, ptr %frame, i64 $arguments
  %arguments = load ptr, ptr %arguments.at
  %results.at = getelementptr inbounds i8, ptr %frame, i64 $results
  %results = load ptr, ptr %results.at
$transfers
; the number of worlds: the product of all dimensions of the first result but the last
  %rank.at = getelementptr inbounds i8, ptr %buffer.$last, i64 $rank
  %rank = load i64, ptr %rank.at
  %shape.at = getelementptr inbounds i8, ptr %buffer.$last, i64 $shape
  %shape = load ptr, ptr %shape.at
  %leading = sub i64 %rank, 1
  br label %dimension
dimension:
  %k = phi i64 [ 0, %call ], [ %k1, %multiply ]
  %worlds = phi i64 [ 1, %call ], [ %product, %multiply ]
  %has_more = icmp slt i64 %k, %leading
  br i1 %has_more, label %multiply, label %work
multiply:
  %length.at = getelementptr inbounds i64, ptr %shape, i64 %k
  %length = load i64, ptr %length.at
  %product = mul i64 %worlds, %length
  %k1 = add i64 %k, 1
  br label %dimension
work:
  store i64 %worlds, ptr %dimensions
  %dispatch = inttoptr i64 $dispatch to ptr
  %loop = inttoptr i64 $loop to ptr
  %failures.at = getelementptr inbounds i64, ptr %dispatch, i64 $failures
  %before = load atomic i64, ptr %failures.at monotonic, align 8
  call void %loop(ptr %args, ptr %dimensions, ptr %steps, ptr %dispatch)
  %after = load atomic i64, ptr %failures.at monotonic, align 8
  %is_done = icmp eq i64 %before, %after
  br i1 %is_done, label %done, label %general
done:
  ret ptr null
general:
  %handler = inttoptr i64 $general to ptr
  %error = call ptr %handler(ptr %frame)
  ret ptr %error
}
