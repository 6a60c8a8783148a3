"""Hypothesis for this folder: enough examples to find what is wrong, few enough to stay fast; no clock in judgement."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ingest", max_examples=100, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ingest")
