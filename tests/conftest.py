"""Settings for all tests."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "zwang", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("zwang")
