"""Settings of the whole suite."""

import os

from hypothesis import settings

# No deadline: a busy machine is no failure. In CI the same examples every time, elsewhere new ones.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
