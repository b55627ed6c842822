; One call for many worlds: for each block of worlds, pack the inputs, run the body, unpack the outputs.
define internal void @batch_with_buffers($parameters, ptr %in) #0 {
entry:
  %count = load i64, ptr %dimensions
$buffers
  %sizes = getelementptr inbounds i64, ptr %kernel, i64 $kernel_fields
  %ports = add i64 %inputs, %outputs
  %any = icmp ne i64 %count, 0
  br i1 %any, label %block, label %end
block:
  %first = phi i64 [ 0, %entry ], [ %next, %after ]
  %left = sub i64 %count, %first
  %is_tail = icmp ult i64 %left, $width
  %worlds = select i1 %is_tail, i64 %left, i64 $width
  br label %input
input:
  %p = phi i64 [ 0, %block ], [ %p1, %input_do ]
  %buffer = phi ptr [ %in, %block ], [ %buffer1, %input_do ]
  %has_input = icmp ult i64 %p, %inputs
  br i1 %has_input, label %input_do, label %run
input_do:
$input_port
  call void @pack(ptr %i.data, i64 %i.outer, i64 %i.inner, i64 %i.size, i64 %worlds, ptr %buffer)
  %buffer1 = getelementptr inbounds $real, ptr %buffer, i64 %i.size
  %p1 = add i64 %p, 1
  br label %input
run:
  call void %body(ptr %in, ptr %out, ptr %frame)
  br label %output
output:
  %r = phi i64 [ %inputs, %run ], [ %r1, %output_do ]
  %result = phi ptr [ %out, %run ], [ %result1, %output_do ]
  %has_output = icmp ult i64 %r, %ports
  br i1 %has_output, label %output_do, label %after
output_do:
$output_port
  call void @unpack(ptr %result, i64 %o.outer, i64 %o.inner, i64 %o.size, i64 %worlds, ptr %o.data)
  %result1 = getelementptr inbounds $real, ptr %result, i64 %o.size
  %r1 = add i64 %r, 1
  br label %output
after:
  %next = add i64 %first, %worlds
  %more = icmp ult i64 %next, %count
  br i1 %more, label %block, label %end
end:
  ret void
}
