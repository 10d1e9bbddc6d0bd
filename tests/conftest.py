"""How hypothesis searches: without a clock, since a busy machine is no fault of the code.

``pytest --hypothesis-profile=brief`` is for instrumented builds, which are several times slower.
"""

from __future__ import annotations

import signal

from hypothesis import settings

# A shell that starts the tests in the background lets them ignore Ctrl-C, and what they start too.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("patient", deadline=None)
settings.register_profile("brief", deadline=None, max_examples=25)
settings.load_profile("patient")
