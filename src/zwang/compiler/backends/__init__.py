"""Code generation: LLVM IR, C99 and PTX."""
