"""Tokenizer files, one module for each format."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from bpe.errors import TokenizerError, TokenizerFileError
from bpe.formats import gpt2, huggingface, tiktoken
from bpe.formats.limits import LEAVE_OUT, Lack, check_leave_out
from bpe.formats.parts import TokenizerFiles, TokenizerParts

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from bpe.formats.special_ids import SpecialIds
    from bpe.pretokenize import Pretokenizer
    from bpe.tokenizer import Tokenizer

__all__ = ["LEAVE_OUT", "Lack", "TokenizerFiles", "TokenizerParts", "read", "write"]


def read(
    path: Path,
    *,
    pretokenizer: Pretokenizer | None = None,
    special_tokens: SpecialIds = None,
) -> TokenizerParts:
    """Read a tokenizer file of any supported format; the name says which.

    Args:
        path: ``*.tiktoken``, or a ``*.model`` that holds the same (Llama 3); ``*vocab.json`` with
            ``*merges.txt`` beside it, or either of the two; any other ``*.json`` as Hugging
            Face's tokenizer.json; or a directory that holds such files.
        pretokenizer: how text is cut, for formats that do not say it.
        special_tokens: each with its id, or by name where the file or its publisher gives it
            one, for formats that do not say it.

    Raises:
        TokenizerFileError: the file cannot be read as its format, or is of none of them.
        OSError: it cannot be opened.
    """
    path = _file(path)
    if path.suffix == ".tiktoken" or (path.suffix == ".model" and tiktoken.holds_ranks(path)):
        return tiktoken.read(path, pretokenizer=pretokenizer, special_tokens=special_tokens)
    pair = _pair(path)
    if pair is not None:
        return gpt2.read(*pair, pretokenizer=pretokenizer, special_tokens=special_tokens)
    if path.suffix == ".model":
        raise TokenizerFileError(f"{path}: {_SENTENCEPIECE}")
    if path.suffix != ".json":
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        raise TokenizerFileError(f"{path}: {_UNKNOWN}")
    if pretokenizer is not None or special_tokens is not None:
        raise TokenizerFileError(
            f"{path}: a tokenizer.json says itself how text is cut and what is special; give "
            "neither pre-tokenizer nor pattern nor special tokens"
        )
    return huggingface.read(path)


_SENTENCEPIECE = (
    "a .model file that holds no ranks in base64 is a SentencePiece model (as of Llama 2, Mistral "
    "or T5): its tokens are characters with a mark for the space, which this library cannot "
    "express"
)
_UNKNOWN = (
    "not known as a tokenizer file by its name: use tokenizer.json, *.tiktoken, or *vocab.json "
    "with *merges.txt beside it"
)


def write(
    tokenizer: Tokenizer,
    path: Path,
    *,
    leave_out: Collection[str] = (),
    dialect: str = "huggingface",
) -> TokenizerFiles:
    """A tokenizer as the files of the format that a name says, as for :func:`read`.

    Args:
        tokenizer: what to write.
        path: ``*.tiktoken``; ``*vocab.json`` or ``*merges.txt`` for both of the pair; any other
            ``*.json``, or a directory that is there, for tokenizer.json.
        leave_out: names of :data:`LEAVE_OUT` that the file may lack silently.
        dialect: of tokenizer.json: ``beam-bpe`` allows the one that only this library reads, for
            what Hugging Face's libraries cannot express.

    Returns:
        What to write, and what it lacks; nothing is written yet.

    Raises:
        TokenizerError: the format cannot hold this tokenizer; the message names what it cannot.
    """
    check_leave_out(leave_out)
    if path.is_dir():
        path /= "tokenizer.json"
    if path.suffix == ".tiktoken":
        return tiktoken.write(tokenizer, path, leave_out=leave_out)
    pair = _pair(path)
    if pair is not None:
        return gpt2.write(tokenizer, *pair, leave_out=leave_out)
    if path.suffix != ".json":
        raise TokenizerError(f"{path}: {_UNKNOWN}")
    text, reason = huggingface.to_json_and_reason(tokenizer, dialect=dialect)
    return TokenizerFiles({path: text.encode()}, {}, reason)


def _pair(path: Path) -> tuple[Path, Path] | None:
    """The paths of vocab.json and merges.txt where one of them is meant."""
    for ending in (gpt2.VOCAB, gpt2.MERGES):
        if path.name.endswith(ending):
            stem = path.name.removesuffix(ending)
            return path.with_name(stem + gpt2.VOCAB), path.with_name(stem + gpt2.MERGES)
    return None


def _file(path: Path) -> Path:
    if not path.is_dir():
        return path
    for name in ("tokenizer.json", gpt2.VOCAB, "tokenizer.model"):
        if (path / name).exists():
            return path / name
    raise TokenizerFileError(f"{path}: the directory holds neither tokenizer.json nor vocab.json")
