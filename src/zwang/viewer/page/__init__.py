"""The live page on a viser server."""
