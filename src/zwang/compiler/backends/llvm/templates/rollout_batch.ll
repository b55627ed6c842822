; A rollout whose arrays are the arguments of a universal function: inputs, then records.
define i1 @rollout_batch($parameters) #1 {
entry:
  %count = load i64, ptr %dimensions
  %rollout = getelementptr inbounds i64, ptr %dispatch, i64 $dispatch_fields
  %operands = getelementptr inbounds i64, ptr %rollout, i64 $rollout_fields
  %filled = alloca i64, i64 $rollout_fields
$copy_fields
  %arguments = add i64 $inputs, $outputs
  %words = mul i64 %arguments, $transfer_fields
  %rows = alloca i64, i64 %words
  %first = ptrtoint ptr %rows to i64
  store i64 %first, ptr $reads
  %input_words = mul i64 $inputs, $transfer_fields
  %record_rows = getelementptr inbounds i64, ptr %rows, i64 %input_words
  %first_record = ptrtoint ptr %record_rows to i64
  store i64 %first_record, ptr $records
  br label %argument
argument:
  %p = phi i64 [ 0, %entry ], [ %p1, %fill ]
  %axis = phi i64 [ %arguments, %entry ], [ %axis2, %fill ]
  %some = icmp ult i64 %p, %arguments
  br i1 %some, label %fill, label %run
fill:
  %operand_word = mul i64 %p, $operand_fields
  %operand = getelementptr inbounds i64, ptr %operands, i64 %operand_word
$load_operand
  %is_over_time = icmp ne i64 %has_time, 0
  %data.at = getelementptr inbounds i64, ptr %args, i64 %p
  %data = load i64, ptr %data.at
  %world_stride.at = getelementptr inbounds i64, ptr %strides, i64 %p
  %world_stride = load i64, ptr %world_stride.at
  %first_stride.at = getelementptr inbounds i64, ptr %strides, i64 %axis
  %first_stride = load i64, ptr %first_stride.at
  %time_stride = select i1 %is_over_time, i64 %first_stride, i64 0
  %axis1 = add i64 %axis, %has_time
  %element_stride.at = getelementptr inbounds i64, ptr %strides, i64 %axis1
  %element_stride = load i64, ptr %element_stride.at
  %axis2 = add i64 %axis1, 1
  %row_word = mul i64 %p, $transfer_fields
  %row = getelementptr inbounds i64, ptr %rows, i64 %row_word
  %element_bytes = add i64 $real_bytes, 0
$store_transfer
  %p1 = add i64 %p, 1
  br label %argument
run:
  %succeeded = call i1 @rollout(ptr %filled, i64 0, i64 %count, ptr %kernel)
  ret i1 %succeeded
}
