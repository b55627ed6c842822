"""Files to mechanisms."""
