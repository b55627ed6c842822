; A buffer that no other call uses, and the word where its address was: one of those at the words
; %kept, or a new one, without a word; null if there is no memory.
define internal { ptr, ptr } @take_buffer(ptr %kept, i64 %kept_count, ptr %kernel, i64 %bytes) #0 {
entry:
$load_allocate
  br label %look
look:
  %slot = phi i64 [ 0, %entry ], [ %slot1, %next ]
  %more = icmp ult i64 %slot, %kept_count
  br i1 %more, label %try, label %new
try:
  %at = getelementptr inbounds i64, ptr %kept, i64 %slot
  %seen = load atomic i64, ptr %at monotonic, align 8
  %is_empty = icmp eq i64 %seen, 0
  br i1 %is_empty, label %next, label %take
take:
  %taken = atomicrmw xchg ptr %at, i64 0 acquire, align 8
  %is_taken = icmp ne i64 %taken, 0
  br i1 %is_taken, label %found, label %next
found:
  %buffer = inttoptr i64 %taken to ptr
  %kept_buffer = insertvalue { ptr, ptr } zeroinitializer, ptr %buffer, 0
  %with_word = insertvalue { ptr, ptr } %kept_buffer, ptr %at, 1
  ret { ptr, ptr } %with_word
next:
  %slot1 = add i64 %slot, 1
  br label %look
new:
  %allocated = call ptr %allocate(i64 %bytes)
  %new_buffer = insertvalue { ptr, ptr } zeroinitializer, ptr %allocated, 0
  ret { ptr, ptr } %new_buffer
}
; Return a buffer to its word, or release it if it has none.
define internal void @return_buffer(ptr %buffer, ptr %word, ptr %kernel) #0 {
entry:
$load_release
  %is_kept = icmp ne ptr %word, null
  br i1 %is_kept, label %keep, label %free
keep:
  %address = ptrtoint ptr %buffer to i64
  store atomic i64 %address, ptr %word release, align 8
  ret void
free:
  call void %release(ptr %buffer)
  ret void
}
