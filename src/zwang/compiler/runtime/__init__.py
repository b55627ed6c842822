"""Loading, calling and caching compiled programs."""
