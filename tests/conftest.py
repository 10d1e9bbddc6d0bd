"""How hypothesis searches: without a clock, since a busy machine is no fault of the code.

``make test-long`` tries five times as many inputs where a test names no number.

``pytest --hypothesis-profile=brief`` is for instrumented builds, which are several times slower.
"""

from __future__ import annotations

import signal

from hypothesis import settings

from tests.shared_data import LONG

# A shell that starts the tests in the background lets them ignore Ctrl-C, and what they start too.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("patient", deadline=None, max_examples=200 if LONG else 40)
settings.register_profile("brief", deadline=None, max_examples=10)
settings.load_profile("patient")
