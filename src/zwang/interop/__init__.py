"""The functions of a compiled mechanism in other programs: JAX, PyTorch and CasADi, with exact derivatives.

Each module is an extra and is imported by itself: `import zwang.interop.jax`. None of them is loaded by
`import zwang`.
"""
