"""Tokenizer files, one module for each format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpe.errors import TokenizerFileError
from bpe.formats import gpt2, huggingface, tiktoken
from bpe.formats.parts import TokenizerParts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bpe.pretokenize import Pretokenizer

__all__ = ["TokenizerParts", "read"]


def read(
    path: Path,
    *,
    pretokenizer: Pretokenizer | None = None,
    special_tokens: Mapping[str, int] | None = None,
) -> TokenizerParts:
    """Read a tokenizer file of any supported format; the name says which.

    Args:
        path: ``*.tiktoken``; ``*vocab.json`` with ``*merges.txt`` beside it, or either of the
            two; any other ``*.json`` as Hugging Face's tokenizer.json; or a directory that holds
            such files.
        pretokenizer: how text is cut, for formats that do not say it.
        special_tokens: each with its id, for formats that do not say it.

    Raises:
        TokenizerFileError: the file cannot be read as its format, or is of none of them.
        OSError: it cannot be opened.
    """
    path = _file(path)
    if path.suffix == ".tiktoken":
        return tiktoken.read(path, pretokenizer=pretokenizer, special_tokens=special_tokens)
    for ending, other in ((gpt2.VOCAB, gpt2.MERGES), (gpt2.MERGES, gpt2.VOCAB)):
        if path.name.endswith(ending):
            pair = {ending: path, other: path.with_name(path.name.removesuffix(ending) + other)}
            return gpt2.read(
                pair[gpt2.VOCAB],
                pair[gpt2.MERGES],
                pretokenizer=pretokenizer,
                special_tokens=special_tokens,
            )
    if path.suffix != ".json":
        raise TokenizerFileError(
            f"{path}: not known as a tokenizer file by its name: use tokenizer.json, *.tiktoken, "
            "or *vocab.json with *merges.txt beside it"
        )
    if pretokenizer is not None or special_tokens is not None:
        raise TokenizerFileError(
            f"{path}: a tokenizer.json says itself how text is cut and what is special; give "
            "neither pre-tokeniser nor pattern nor special tokens"
        )
    return huggingface.read(path)


def _file(path: Path) -> Path:
    if not path.is_dir():
        return path
    for name in ("tokenizer.json", gpt2.VOCAB):
        if (path / name).exists():
            return path / name
    raise TokenizerFileError(f"{path}: the directory holds neither tokenizer.json nor vocab.json")
