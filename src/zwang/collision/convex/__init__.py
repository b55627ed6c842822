"""Contacts of convex shapes without a closed form: nearest points, least overlap, contact manifolds."""
