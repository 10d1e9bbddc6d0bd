"""Exact byte-pair encoding: count pre-tokens, train a tokenizer, encode and decode.

From texts to ids, in the order in which modules import each other:

- ``normalizer``, ``pretokenizer``, ``special_tokens``: how text is changed and cut; ``segments``:
  all of it, as the core takes it.
- ``counting``: texts to counts; ``counts``: their sums, pruning, and files.
- ``models``: what a pre-token consists of: bytes, characters, or WordPieces.
- ``ties``, ``symbols``, ``trainer``: counts to a tokenizer; ``parity``: counts of groups to one;
  ``training_report``: ``training.json``.
- ``parts``: what a tokenizer is made of, which ``formats`` read and write; ``core_encoder``: the
  core's encoder of it; ``truncation``: of fewer tokens.
- ``dropout``, ``tokenizer``: texts to ids; ``explain``, ``diff``: for people.
- ``run_counting``: texts to counts of runs of its tokens; ``superword_trainer``: these to
  superwords.
- ``formats``: tokenizer files; ``regex``: regular expressions; ``presets``: settings by name;
  ``names``: of what settings choose from; ``errors``: every error.
- ``native``: the C++ core (``_native``); ``reference``: its readable twin,
  which `explain` and tests use.

``CONTRIBUTING.md`` names the files for each kind of change.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bpe.counting import count_pretokens as count_pretokens
    from bpe.counts import PretokenCounts as PretokenCounts
    from bpe.errors import BpeError as BpeError
    from bpe.models import ByteLevel as ByteLevel
    from bpe.models import CharacterLevel as CharacterLevel
    from bpe.models import WordPiece as WordPiece
    from bpe.parity import train_parity as train_parity
    from bpe.pretokenizer import PRETOKENIZERS as PRETOKENIZERS
    from bpe.pretokenizer import Pretokenizer as Pretokenizer
    from bpe.run_counting import count_runs as count_runs
    from bpe.superword_trainer import train_superwords as train_superwords
    from bpe.tokenizer import Tokenizer as Tokenizer
    from bpe.trainer import train as train
    from bpe.training_report import Training as Training

__version__ = "0.1.0"

# Imported when they are asked for: a command that encodes trains nothing.
_MODULES = {
    "PRETOKENIZERS": "bpe.pretokenizer",
    "BpeError": "bpe.errors",
    "ByteLevel": "bpe.models",
    "CharacterLevel": "bpe.models",
    "PretokenCounts": "bpe.counts",
    "Pretokenizer": "bpe.pretokenizer",
    "Tokenizer": "bpe.tokenizer",
    "Training": "bpe.training_report",
    "WordPiece": "bpe.models",
    "count_pretokens": "bpe.counting",
    "count_runs": "bpe.run_counting",
    "train": "bpe.trainer",
    "train_parity": "bpe.parity",
    "train_superwords": "bpe.superword_trainer",
}

__all__ = ["__version__", *_MODULES]  # noqa: PLE0604 - its keys are strings


def __getattr__(name: str) -> Any:
    """One of the names above, from its module; or a module of this package."""
    if name in _MODULES:
        value = getattr(import_module(_MODULES[name]), name)
        globals()[name] = value
        return value
    if not name.startswith("_") and find_spec(f"{__name__}.{name}"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
