"""Settings of the whole suite."""

import os
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

# No deadline: a busy machine is no failure. In CI the same examples every time, elsewhere new ones.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(autouse=True, scope="session")
def _state_of_its_own() -> Iterator[None]:
    """A gateway that a test starts as a process must not keep its invented figures in the user's state folder."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", folder)
        yield
