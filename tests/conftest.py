"""Shared settings: property tests are the same on every run and print what would reproduce them."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    print_blob=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("explore", parent=settings.get_profile("default"),
                          derandomize=False, max_examples=2000)  # fmt: skip
# Spark's many short-lived machines: no time is spent on compiling well what runs for seconds.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first: processes take whole files, and a long one that comes last
    would leave the others idle."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
