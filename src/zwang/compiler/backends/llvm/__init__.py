"""LLVM IR with one world a lane."""
