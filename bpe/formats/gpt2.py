"""``vocab.json`` and ``merges.txt``, the pair of files that GPT-2 was published in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpe.errors import TokenizerFileError
from bpe.formats.huggingface import read_merges, read_tokens, read_vocab, spelled_bytes
from bpe.formats.parts import TokenizerParts
from bpe.formats.strict_json import Entry, read_bytes, read_json
from bpe.pretokenize import Pretokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

VOCAB = "vocab.json"
MERGES = "merges.txt"


def read(
    vocab_path: Path,
    merges_path: Path,
    *,
    pretokenizer: Pretokenizer | None = None,
    special_tokens: Mapping[str, int] | None = None,
) -> TokenizerParts:
    """Read the two files.

    Args:
        vocab_path: a JSON object of tokens, spelled in the byte alphabet, and their ids.
        merges_path: a line for each merge, left and right with a space between; a first line that
            begins with ``#version`` is skipped.
        pretokenizer: GPT-2's, where the files are to be read as another's.
        special_tokens: where None, those tokens of the vocabulary that are neither a byte nor made
            by a merge: GPT-2's ``<|endoftext|>``.

    Raises:
        TokenizerFileError: a file is broken, or says something that cannot be honoured.
    """
    file = read_json(str(vocab_path), read_bytes(vocab_path))
    vocab = read_vocab(file)
    merges = read_merges(Entry(str(merges_path), "merges", _lines(merges_path)), vocab)
    if special_tokens is None:
        made = set(merges[2::3])
        special_tokens = {
            name: id_ for name, id_ in vocab.items() if id_ not in made and len(name) > 1
        }
        for name in special_tokens:
            if spelled_bytes(name):
                file.get(name).fail(
                    "is made by no merge: it may be a special token, or bytes that no text "
                    "encodes to; name the special tokens"
                )
    for content, id_ in special_tokens.items():
        if vocab.get(content, id_) != id_:
            file.get(content).fail(f"has the id {vocab[content]} here, not {id_}")
    return TokenizerParts(
        tokens=read_tokens(file, vocab, special_tokens, merges),
        merges=merges,
        pretokenizer=pretokenizer or Pretokenizer("gpt2"),
        special_tokens=special_tokens,
    )


def _lines(path: Path) -> list[str]:
    try:
        lines = read_bytes(path).decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise TokenizerFileError(f"{path}: is not UTF-8: {error}") from None
    if lines[0].startswith("#version"):
        del lines[0]
    return [line.rstrip("\r") for line in lines if line.rstrip("\r")]
