"""The tables of TensorFlow's internal modules name what is there."""

from __future__ import annotations

import importlib

import pytest

from stoker._src.cli import redirect
from stoker._src.cli.internals.tables import AWAITED, MODULES, RENAMED

APIS = ("stoker.compat.v1", "stoker")


@pytest.mark.parametrize("internal", MODULES)
def test_every_place_is_a_module(internal):
    """Each place can be imported, under one of the two APIs at least, or is stated to be awaited."""
    for place in MODULES[internal]:
        modules = {redirect.in_full(place, api) for api in APIS} - {None}
        assert modules or place in AWAITED, f"{internal}: stoker has no module {place!r}"
        for module in modules:
            importlib.import_module(module)


@pytest.mark.parametrize(("internal", "name"), RENAMED)
def test_every_renamed_thing_exists(internal, name):
    """What an internal name stands for is found in the places of its module."""
    module = redirect._Internal(f"tensorflow.{internal}", MODULES[internal], APIS[0])
    assert any(module._look_up(RENAMED[internal, name], api) is not None for api in APIS)
    assert getattr(module, name) is not None


@pytest.mark.parametrize("place", sorted(AWAITED))
def test_what_is_awaited_is_not_there(place):
    """A module that has come is taken off the list, so that its names are found; one that no entry names is not on it."""
    assert any(place in places for places in MODULES.values())
    assert not any(redirect._exists(f"{api}.{place}") for api in APIS), f"stoker has {place}: take it off AWAITED"
