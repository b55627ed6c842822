"""Code generation from programs: LLVM IR, C99 and PTX."""
