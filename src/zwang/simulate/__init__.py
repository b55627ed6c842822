"""Steps, rollouts, recordings."""
