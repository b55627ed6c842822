"""Settings for all tests: the same examples at every run; `--hypothesis-profile=search` looks for new ones."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "zwang", deadline=None, max_examples=25, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", settings.get_profile("zwang"), max_examples=100, derandomize=False)
settings.load_profile("zwang")
