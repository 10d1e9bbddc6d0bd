"""The tokenizer for a page that a browser shows: plain JavaScript, and its data."""

from __future__ import annotations

from importlib.resources import files

from bpe.javascript.data import tokenizer_data, why_not

__all__ = ["script", "tokenizer_data", "why_not"]


def script() -> str:
    """The text of ``tokenizer.js``, which defines ``makeTokenizer``."""
    return files(__name__).joinpath("tokenizer.js").read_text("utf-8")
