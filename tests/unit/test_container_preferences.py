"""Tests what a request's preferences make of a role's resources."""

from __future__ import annotations

from howdah.engines import NO_PREFERENCES, ContainerPreferences
from howdah.spec import Resources, Role

ROLE = Role("train", resources=Resources(memory_mib=1024, vcores=2, gpus=1))


def test_the_preferred_memory_takes_the_place_of_the_roles() -> None:
    assert ContainerPreferences(memory_mib=4096).resources_for(ROLE) == Resources(memory_mib=4096, vcores=2, gpus=1)


def test_without_a_preference_the_role_has_what_it_says() -> None:
    assert NO_PREFERENCES.resources_for(ROLE) == ROLE.resources
