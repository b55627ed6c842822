"""The compiler: traced functions of scalars to machine code. It knows no mechanics."""
