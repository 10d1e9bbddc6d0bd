"""Logging of a command: warnings on stderr, one line each, also Beam's."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    _Handler = logging.StreamHandler[TextIO]
else:
    _Handler = logging.StreamHandler  # generic in Python 3.11 and later only


class _CurrentStderr(_Handler):
    """Writes where ``sys.stderr`` points at the moment, so that a progress bar is not torn."""

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, _: TextIO) -> None: ...


def set_up_logging() -> None:
    """Show warnings, not what Beam tells at INFO; call it before Beam is imported.

    Importing Beam configures the root logger if nobody has, in its own format.
    """
    handler = _CurrentStderr()
    handler.setFormatter(logging.Formatter("bpe: %(levelname)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
