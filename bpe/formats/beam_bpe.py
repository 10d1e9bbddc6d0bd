"""``"version": "beam-bpe-1"``: tokenizer.json for what Hugging Face's libraries cannot express.

They refuse an unknown version, so they never misread such a file. Three entries differ from
theirs. ``normalizer`` is the list of steps. ``pre_tokenizer`` has ``name`` or
``pattern`` (one or a list), and ``never_split``. ``model`` has the ``type`` of
:mod:`bpe.models`, its settings by their names there, a ``vocab`` of those tokens that text can
become, and ``superwords``, if there are any: merges across pre-tokens, in the form of ``merges``.
Releases that do not know superwords refuse a file that has them. Tokens that are cut out of text
are in ``added_tokens`` alone.
"""

from __future__ import annotations

from typing import Any

from bpe.byte_alphabet import to_text
from bpe.errors import PretokenizerError, TokenizerError
from bpe.formats.strict_json import Entry
from bpe.models import ByteLevel, Model, model_settings, read_model
from bpe.parts import Parts
from bpe.pretokenizer import Pretokenizer
from bpe.regex.syntax import check_size

VERSION = "beam-bpe-1"


def write_entries(parts: Parts) -> dict[str, Any]:
    """Return the entries that differ from Hugging Face's; ``model`` has no vocabulary or merges.

    Raises:
        TokenizerError: a pattern is too large to be read back.
    """
    try:
        for pattern in (*parts.pretokenizer.patterns, *parts.pretokenizer.never_split):
            check_size(pattern)
    except ValueError as error:
        raise TokenizerError(f"tokenizer.json cannot hold this pre-tokenizer: {error}") from None
    cut = parts.pretokenizer.settings
    return {
        "normalizer": cut["normalizer"],
        "pre_tokenizer": {
            "name": cut["pretokenizer"],
            "pattern": cut["pattern"],
            "never_split": cut["never_split"],
        },
        "model": {**model_settings(parts.model), "ignore_merges": parts.ignore_merges},
    }


def write_names(parts: Parts) -> dict[int, str]:
    """Return the text of each token in the vocabulary, by id."""
    atomic = parts.atomic_ids
    spelled = to_text if isinstance(parts.model, ByteLevel) else bytes.decode
    return {
        id_: spelled(token)
        for id_, token in enumerate(parts.tokens)
        if token is not None and id_ not in atomic
    }


def read_cut(file: Entry) -> Pretokenizer:
    """Return the pre-tokenizer, with the normalizer.

    Raises:
        TokenizerFileError: the entries are wrong.
    """
    cut = file.get("pre_tokenizer").object("name", "pattern", "never_split")
    entry = cut.get("pattern")
    pattern = _strings(entry) if isinstance(entry.value, list) else entry.optional()
    never_split = _strings(cut.get("never_split"))
    try:
        for regex in (*never_split, *((pattern,) if isinstance(pattern, str) else pattern or ())):
            check_size(regex)
        return Pretokenizer(
            cut.get("name").optional(),
            pattern,
            normalizer=_strings(file.get("normalizer")),
            never_split=never_split,
        )
    except (PretokenizerError, ValueError) as error:
        cut.fail(str(error))


_CONTENTS = ("ignore_merges", "vocab", "merges", "superwords")


def model_of(entry: Entry) -> Model:
    """Return the model, without its vocabulary.

    Raises:
        TokenizerFileError: the model or a setting is unknown.
    """
    fields = entry.object().value
    try:
        return read_model({name: fields[name] for name in fields if name not in _CONTENTS})
    except ValueError as error:
        entry.fail(str(error))


def _strings(entry: Entry) -> tuple[str, ...]:
    return () if entry.value is None else tuple(item.string() for item in entry.items())
