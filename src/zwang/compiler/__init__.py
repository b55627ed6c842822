"""The compiler: from traced functions of scalars to machine code. It has no knowledge of mechanics."""
