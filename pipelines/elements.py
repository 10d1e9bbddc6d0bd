"""Elements of our pipelines: bytes, numbers, and tuples of them.

Descriptors of splits and of finished parts are packed before they become elements. Beam's local
runner can send what a worker has written so far while an element is being written, which is safe
only where no Python code runs in between, as it does where Beam pickles an object itself. (`run`
switches that off; inside a pipeline of another program only this is left.)
"""

from __future__ import annotations

import pickle
from typing import Any


def pack(value: Any) -> bytes:
    """``value`` as an element."""
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def unpack(element: bytes) -> Any:
    """The value of an element that `pack` made, in another step of the same job."""
    return pickle.loads(element)  # noqa: S301 - from our own workers, as all that Beam unpickles
