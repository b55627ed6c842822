"""Quantities of one state: forces of constraints and contacts, wrenches, sensors, residuals."""
