"""``vocab.json`` and ``merges.txt``, the two files of GPT-2."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from bpe.errors import TokenizerError
from bpe.formats.export_checks import (
    KINDS,
    Loss,
    Ordinary,
    check_losses,
    cuts_as,
    named_tokens,
)
from bpe.formats.format import Format, SpecialIds, TokenizerFiles, with_ids
from bpe.formats.strict_json import Entry, read_bytes, read_json, read_text
from bpe.formats.token_text import (
    read_byte_tokens,
    read_merges,
    read_vocab,
    spelled_bytes,
    token_names,
)
from bpe.names import LossName
from bpe.parts import Parts
from bpe.pretokenizer import Pretokenizer

VOCAB = "vocab.json"
MERGES = "merges.txt"


def read(
    path: Path, pretokenizer: Pretokenizer | None = None, special_tokens: SpecialIds | None = None
) -> Parts:
    """Read ``vocab.json`` and ``merges.txt``.

    ``vocab.json`` is an object of tokens, spelled in the byte alphabet, and their ids.
    ``merges.txt`` has a line for each merge, left and right with a space between; a first line
    that begins with ``#version`` is skipped.

    Args:
        path: of one of them.
        pretokenizer: None for GPT-2's.
        special_tokens: by name, or with their ids; where None, those tokens of the vocabulary
            that are neither a byte nor made by a merge: GPT-2's ``<|endoftext|>``.

    Raises:
        TokenizerFileError: a file is broken, or asks for something that is not supported.
    """
    vocab_path, merges_path = _pair(path)
    file = read_json(str(vocab_path), read_bytes(vocab_path))
    vocab = read_vocab(file)
    merges = read_merges(Entry(str(merges_path), "merges", _lines(merges_path)), vocab)
    if special_tokens is not None:
        special = with_ids(vocab_path, special_tokens, vocab)
    else:
        results = set(merges.results)
        special = {name: id_ for name, id_ in vocab.items() if id_ not in results and len(name) > 1}
        for name in special:
            if spelled_bytes(name):
                file.get(name).fail(
                    "is made by no merge: it may be a special token, or bytes that no text "
                    "encodes to; name the special tokens"
                )
    for content, id_ in special.items():
        if vocab.get(content, id_) != id_:
            file.get(content).fail(f"has the id {vocab[content]} here, not {id_}")
    return Parts(
        tokens=read_byte_tokens(file, vocab, special, merges),
        merges=merges,
        pretokenizer=pretokenizer or Pretokenizer("gpt2"),
        special_tokens=special,
    )


def _pair(path: Path) -> tuple[Path, Path]:
    """Return the paths of vocab.json and merges.txt, of which one is given."""
    stem = path.name.removesuffix(VOCAB).removesuffix(MERGES)
    return path.with_name(stem + VOCAB), path.with_name(stem + MERGES)


def _lines(path: Path) -> list[str]:
    lines = read_text(path).split("\n")
    if lines[0].startswith("#version"):
        del lines[0]
    return [line.rstrip("\r") for line in lines if line.rstrip("\r")]


_KIND, _ = KINDS["vocab"]
_VERSION = "#version"


def write(parts: Parts, path: Path, leave_out: Collection[str], *_: str) -> TokenizerFiles:
    """Return a tokenizer as the two files, as Hugging Face's ``tokenizers`` writes them.

    Special tokens are in the vocabulary; the reader recognizes them because no merge makes them.

    Raises:
        TokenizerError: the files would silently lose something; the message names what.
    """
    ordinary = Ordinary(parts, kind=_KIND)
    _check_tokens(parts, ordinary)
    known: dict[LossName, Loss | None] = {}
    if not cuts_as(parts, "gpt2"):
        known["pretokenizer"] = Loss("a pre-tokenizer other than gpt2")
    if parts.special_tokens and "special-tokens" in leave_out:
        known["special-tokens"] = Loss(f"the special tokens {named_tokens(parts.special_tokens)}")
    losses = check_losses(parts, "vocab", leave_out, known=known)
    names = token_names(parts, kind=_KIND)
    special = set(parts.special_tokens.values())
    written = {
        name: id_
        for id_, name in sorted(names.items())
        if ordinary.tokens[id_] is not None
        or (id_ in special and "special-tokens" not in leave_out)
    }
    if any(spelled_bytes(name) for name in parts.special_tokens if name in written):
        losses["special-tokens"] = Loss("which tokens are special", reported=True)
    lines = [f"{_VERSION}: 0.2"]
    lines += (f"{names[left]} {names[right]}" for left, right, _ in parts.merges)
    # Hugging Face's readers skip every such line, not the first alone.
    for line in lines[1:]:
        if line.startswith(_VERSION):
            raise TokenizerError(f"{_KIND} cannot hold the merge {line!r}: it reads as a comment")
    vocab = json.dumps(written, ensure_ascii=False, separators=(",", ":"))
    vocab_path, merges_path = _pair(path)
    contents = {
        merges_path: ("\n".join(lines) + "\n").encode(),
        vocab_path: vocab.encode(),
    }
    return TokenizerFiles(contents, losses)


def _check_tokens(parts: Parts, ordinary: Ordinary) -> None:
    """Check that no token would become special, or be lost without ignore_merges."""
    unmade = ordinary.unmade()
    if unmade and parts.ignore_merges:
        raise TokenizerError(
            f"{_KIND} cannot hold tokens that only ignore_merges finds: {ordinary.named(unmade)}"
        )
    listed = set(parts.merges.results)
    silent = [id_ for id_ in unmade if id_ not in listed]
    if silent:
        raise TokenizerError(
            f"{_KIND} cannot hold tokens that no merge makes, which would be special there: "
            f"{ordinary.named(silent)}"
        )
    for content, id_ in parts.special_tokens.items():
        if len(content) == 1:
            raise TokenizerError(
                f"{_KIND} cannot hold the special token {content!r} ({id_}): one character is the "
                "name of a byte there"
            )


FORMAT = Format(
    files=f"*{VOCAB} with *{MERGES}",
    names=(f"*{VOCAB}", f"*{MERGES}"),
    usual_names=(VOCAB, MERGES),
    self_contained=False,
    companions=lambda path: {file: True for file in _pair(path) if file != path},
    read=read,
    write=write,
)
