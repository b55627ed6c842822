"""Assembly, caching, loading and execution of compiled programs."""
