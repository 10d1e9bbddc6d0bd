"""The ``model`` of a tokenizer.json: merges of bytes or of characters, or WordPiece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bpe.errors import InexpressibleError
from bpe.formats.spelling import read_merges, read_strings, read_tokens
from bpe.formats.strict_json import shorten
from bpe.models import ByteLevel, CharacterLevel, Model, WordPiece

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import Buffer

    from bpe.formats.strict_json import Entry
    from bpe.tokenizer import Tokenizer

_BPE_KEYS = (
    "type",
    "dropout",
    "unk_token",
    "continuing_subword_prefix",
    "end_of_word_suffix",
    "fuse_unk",
    "byte_fallback",
    "ignore_merges",
    "vocab",
    "merges",
)
_WORD_PIECE_KEYS = (
    "type",
    "unk_token",
    "continuing_subword_prefix",
    "max_input_chars_per_word",
    "vocab",
)


def write_model(tokenizer: Tokenizer) -> dict[str, Any]:
    """The settings of the model, to which vocabulary and merges are added.

    Raises:
        InexpressibleError: Hugging Face's libraries have no such model.
    """
    model = tokenizer.model
    if isinstance(model, WordPiece):
        return {
            "type": "WordPiece",
            "unk_token": model.unknown,
            "continuing_subword_prefix": model.prefix,
            "max_input_chars_per_word": model.max_characters,
        }
    unknown = None
    if isinstance(model, CharacterLevel):
        unknown = model.unknown
        if model.end_of_word:
            raise InexpressibleError(
                f"the end of word {model.end_of_word!r} is a symbol of its own here, and part of "
                "the last character there"
            )
        if unknown is None:
            raise InexpressibleError(
                "a character without a token is an error here, and dropped silently there"
            )
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unknown,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": tokenizer.ignore_merges,
    }


def write_decoder(model: Model) -> dict[str, Any]:
    """The ``decoder`` that puts tokens of a model together."""
    if isinstance(model, WordPiece):
        return {"type": "WordPiece", "prefix": model.prefix, "cleanup": False}
    if isinstance(model, CharacterLevel):
        return {"type": "Fuse"}
    return {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}


@dataclass(frozen=True)
class Contents:
    """What a ``model`` entry says, for :class:`bpe.formats.TokenizerParts`."""

    model: Model
    tokens: Sequence[bytes | None]
    merges: Sequence[tuple[int, int, int]] | Buffer = ()
    ignore_merges: bool = False


def read_model(entry: Entry, *, byte_level: bool) -> Model:
    """The model that an entry asks for; its vocabulary is not looked at.

    Args:
        entry: ``model``.
        byte_level: whether the pre-tokenizer makes bytes of the text.

    Raises:
        TokenizerFileError: it is none that is supported, or has settings that are not.
    """
    kind = entry.get("type")
    if kind.value == "WordPiece":
        return _read_word_piece(entry, byte_level=byte_level)
    entry.object(*_BPE_KEYS)
    entry.get("dropout").must_be(None, 0, 0.0)
    entry.get("continuing_subword_prefix").must_be(None, "")
    suffix = entry.get("end_of_word_suffix")
    if suffix.value not in (None, ""):
        suffix.fail(
            f"{shorten(suffix.value)} is not supported: it is part of the last character there, "
            "and could only be a symbol of its own here"
        )
    unknown = entry.get("unk_token").value
    if unknown is not None:
        unknown = entry.get("unk_token").string()
    fuse, fallback = entry.get("fuse_unk"), entry.get("byte_fallback")
    # These say what becomes of a byte without a token. Every byte has one where they are symbols
    # (the tokenizer checks that), so they change nothing there.
    if fuse.boolean(default=False) and not byte_level:
        fuse.fail("true is not supported: each unknown character is a token of its own")
    if fallback.boolean(default=False) and not byte_level:
        fallback.fail("true is not supported (SentencePiece, as in Llama 2)")
    if byte_level:
        return ByteLevel()
    if not unknown:
        entry.get("unk_token").fail(
            "there is none, and the pre-tokenizer does not end in ByteLevel: characters without a "
            "token are dropped silently there, which is not supported"
        )
    return CharacterLevel(end_of_word="", unknown=unknown)


def check_model_type(entry: Entry) -> None:
    """Refuse models that are neither BPE nor WordPiece, before anything else is said of a file."""
    kind = entry.object().get("type")
    if kind.value is None and "merges" not in entry.value:  # old files do not name the type
        kind.fail("no model type, and no merges: only BPE and WordPiece are supported")
    if kind.value is not None and kind.string() not in ("BPE", "WordPiece"):
        kind.fail(f"the model {shorten(kind.value)} is not supported: only BPE and WordPiece are")


def _read_word_piece(entry: Entry, *, byte_level: bool) -> WordPiece:
    entry.object(*_WORD_PIECE_KEYS)
    if byte_level:
        entry.get("type").fail("WordPiece over bytes is not supported: its symbols are characters")
    longest = entry.get("max_input_chars_per_word")
    if type(longest.value) is not int or not 1 <= longest.value < 1 << 32:
        longest.fail(f"{shorten(longest.value)} is not a number from 1 to 2^32 - 1")
    unknown = entry.get("unk_token")
    if not unknown.string():
        unknown.fail("is empty")
    return WordPiece(
        prefix=entry.get("continuing_subword_prefix").string(),
        unknown=unknown.string(),
        max_characters=longest.value,
    )


def read_contents(
    entry: Entry, model: Model, vocab: Mapping[str, int], added: Mapping[str, int]
) -> Contents:
    """The tokens and merges of a model.

    Raises:
        TokenizerFileError: they are broken, or spelled as no token of such a model is.
    """
    names = entry.get("vocab")
    if isinstance(model, WordPiece):
        return Contents(model, read_strings(names, vocab, added))
    merges = read_merges(entry.get("merges"), vocab)
    ignore_merges = entry.get("ignore_merges").boolean(default=False)
    tokens = (
        read_tokens(names, vocab, added, merges, ignore_merges=ignore_merges)
        if isinstance(model, ByteLevel)
        else read_strings(names, vocab, added)
    )
    return Contents(model, tokens, merges, ignore_merges)
