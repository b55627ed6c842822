"""Mechanisms in other programs: functions in JAX, PyTorch and CasADi, with exact derivatives; C99 libraries,
functional mock-up units and WebAssembly modules.

`zwang.interop.jax`, `.torch` and `.casadi` are extras, each imported by itself. None of them is loaded by
`import zwang`.
"""
