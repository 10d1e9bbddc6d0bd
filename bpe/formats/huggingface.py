"""``tokenizer.json``, the file of Hugging Face's ``tokenizers`` and ``transformers``.

Written as ``tokenizers`` 0.2x writes it, or, where that cannot express a tokenizer, in a dialect
that those libraries refuse. Of what they write, BPE of bytes or characters and WordPiece are read;
whatever would make Hugging Face's ids differ from ours is refused by name.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from bpe.errors import InexpressibleError, TokenizerError
from bpe.formats import dialect as beam_bpe
from bpe.formats.added_tokens import read_added_tokens, write_added_tokens
from bpe.formats.models import (
    check_model_type,
    read_contents,
    read_model,
    write_decoder,
    write_model,
)
from bpe.formats.normalizers import read_normalizer, write_normalizer
from bpe.formats.parts import TokenizerParts
from bpe.formats.post_processors import check_post_processor
from bpe.formats.pre_tokenizers import ends_in_bytes, read_pre_tokenizer, write_pre_tokenizer
from bpe.formats.spelling import read_vocab, token_names
from bpe.formats.strict_json import Entry, read_bytes, read_json, shorten
from bpe.models import ByteLevel, WordPiece
from bpe.pretokenize import Pretokenizer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from bpe.tokenizer import Tokenizer

_VERSION = "1.0"


Dialect: TypeAlias = Literal["huggingface", "beam-bpe"]
DIALECTS: tuple[str, ...] = get_args(Dialect)


def to_json(tokenizer: Tokenizer, *, dialect: str = "huggingface") -> str:
    """A tokenizer as the text of its tokenizer.json; equal tokenizers give equal texts.

    Raises:
        InexpressibleError: it would be of the dialect, which was not allowed.
        TokenizerError: no tokenizer.json holds it, or there is no such dialect.
    """
    return to_json_and_reason(tokenizer, dialect=dialect)[0]


def to_json_and_reason(
    tokenizer: Tokenizer, *, dialect: str = "huggingface"
) -> tuple[str, str | None]:
    """The text, and why it is of the dialect; None where it is Hugging Face's.

    Args:
        tokenizer: what to write.
        dialect: ``beam-bpe`` allows the dialect for what Hugging Face's libraries cannot express.

    Raises:
        InexpressibleError, TokenizerError: as :func:`to_json`.
    """
    if dialect not in DIALECTS:
        raise TokenizerError(f"unknown dialect {dialect!r:.60}: use one of {', '.join(DIALECTS)}")
    reason = None
    try:
        names = token_names(tokenizer)
        entries = _entries(tokenizer)
    except InexpressibleError as error:
        if dialect == "huggingface":
            raise InexpressibleError(
                f"Hugging Face's tokenizer.json cannot express this tokenizer: {error}; give "
                "`dialect` beam-bpe to write a tokenizer.json that only bpe reads"
            ) from None
        reason = str(error)
        names = beam_bpe.write_names(tokenizer)
        entries = beam_bpe.write_entries(tokenizer)
    head = {
        "version": beam_bpe.VERSION if reason else _VERSION,
        "truncation": None,
        "padding": None,
        "added_tokens": write_added_tokens(tokenizer),
        "normalizer": entries["normalizer"],
        "pre_tokenizer": entries["pre_tokenizer"],
        "post_processor": tokenizer.post_processor,
        "decoder": entries.get("decoder"),
        "model": entries["model"],
    }
    has_merges = reason is not None or not isinstance(tokenizer.model, WordPiece)
    return _joined(head, names, tokenizer.merges if has_merges else None), reason


def _entries(tokenizer: Tokenizer) -> dict[str, Any]:
    """The entries for Hugging Face's libraries; ``model`` without vocabulary and merges.

    Raises:
        InexpressibleError: they cannot express the tokenizer.
    """
    byte_level = isinstance(tokenizer.model, ByteLevel)
    return {
        "normalizer": write_normalizer(tokenizer.pretokenizer.normalizer),
        "pre_tokenizer": write_pre_tokenizer(tokenizer.pretokenizer, byte_level=byte_level),
        "decoder": write_decoder(tokenizer.model),
        "model": write_model(tokenizer),
    }


def _joined(
    head: Mapping[str, Any],
    names: Mapping[int, str],
    merges: Iterable[tuple[int, int, int]] | None,
) -> str:
    """The text of the file.

    The two long lists are put in by hand: json indents in plain Python, ten times slower.
    """
    # In one call, one name a line: JSON has no line end within a string.
    lines = json.dumps(list(names.values()), ensure_ascii=False, separators=("\n", ""))
    quoted = dict(zip(names, lines[1:-1].split("\n"), strict=True))
    lists = [f'"vocab": {{{_lines(f"{name}: {id_}" for id_, name in quoted.items())}}}']
    if merges is not None:
        pairs = _lines(
            f"[\n        {quoted[left]},\n        {quoted[right]}\n      ]"
            for left, right, _ in merges
        )
        lists.append(f'"merges": [{pairs}]')
    end_of_model = "\n  }\n}"
    text = json.dumps(head, ensure_ascii=False, indent=2).removesuffix(end_of_model)
    return ",\n    ".join([text, *lists]) + end_of_model


def _lines(items: Iterable[str]) -> str:
    joined = ",\n      ".join(items)
    return f"\n      {joined}\n    " if joined else ""


def read(path: Path) -> TokenizerParts:
    """Read a tokenizer.json.

    Raises:
        TokenizerFileError: the file is broken, or says something that this library cannot honour
            exactly; the message names the file and the entry.
    """
    file = read_json(str(path), read_bytes(path)).object(
        "version",
        "truncation",
        "padding",
        "added_tokens",
        "normalizer",
        "pre_tokenizer",
        "post_processor",
        "decoder",
        "model",
    )
    file.get("version").must_be(_VERSION, beam_bpe.VERSION, None)
    file.get("truncation").must_be(None)
    file.get("padding").must_be(None)
    for name in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        file.get(name).bounded()
    entry = file.get("model")
    is_dialect = file.get("version").value == beam_bpe.VERSION
    if is_dialect:
        model, cut = beam_bpe.read_model(entry), beam_bpe.read_cut(file)
    else:
        check_model_type(entry)  # before the rest: what it is decides what is worth saying
        _refuse_sentencepiece(file)
        normalizer = read_normalizer(file.get("normalizer"))
        steps = read_pre_tokenizer(file.get("pre_tokenizer"))
        model = read_model(entry, byte_level=ends_in_bytes(file.get("pre_tokenizer")))
        cut = Pretokenizer(pattern=steps, normalizer=normalizer)
    check_post_processor(file.get("post_processor"))
    _check_decoder(file.get("decoder"), None if is_dialect else write_decoder(model)["type"])

    vocab = read_vocab(entry.get("vocab"))
    added, special = read_added_tokens(
        file.get("added_tokens"),
        vocab,
        normalizes=bool(cut.normalizer) and not is_dialect,
        own_ids=is_dialect,
    )
    read_them = beam_bpe.read_contents if is_dialect else read_contents
    contents = read_them(entry, model, vocab, added)
    ordinary = {content: id_ for content, id_ in added.items() if content not in special}
    if isinstance(model, WordPiece) and not is_dialect:
        _check_pieces(file.get("added_tokens"), model, ordinary.keys() - vocab, cut)
    return TokenizerParts(
        **vars(contents),
        pretokenizer=cut,
        special_tokens={content: id_ for content, id_ in added.items() if content in special},
        added_tokens=ordinary,
        post_processor=file.get("post_processor").value,
    )


def _refuse_sentencepiece(file: Entry) -> None:
    """Refuse BPE of characters with a mark for the space and bytes for the rest, by its name."""
    mark = "\N{LOWER ONE EIGHTH BLOCK}"
    normalizer = file.get("normalizer")
    if mark in json.dumps(normalizer.value, ensure_ascii=False):
        normalizer.fail(
            "puts a mark in the place of spaces: this is a SentencePiece tokenizer, as of Llama 2, "
            "whose tokens are characters with that mark, which this library cannot express"
        )


def _check_pieces(entry: Entry, model: WordPiece, added: Iterable[str], cut: Pretokenizer) -> None:
    """Refuse tokens outside the vocabulary that words could hold where no text is cut at them."""
    for content in sorted(added):
        if cut.normalizer or (model.prefix and content.startswith(model.prefix)):
            entry.fail(
                f"{shorten(content)} is not in the vocabulary of the model, so that it is no piece "
                "of a word there, and it would be one here: add it to the vocabulary"
            )


def _check_decoder(entry: Entry, kind: str | None) -> None:
    """Allow none, or that of the model: ids do not depend on it."""
    if entry.value is not None:
        if kind is None:
            entry.must_be(None)
        entry.object().get("type").must_be(kind)
