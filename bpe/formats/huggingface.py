"""``tokenizer.json``, the file of Hugging Face's ``tokenizers`` and ``transformers``.

Written as by ``tokenizers`` 0.2x; or, if that cannot express a tokenizer, in a dialect that those
libraries refuse. Read: BPE of bytes or characters, and WordPiece. Whatever would make Hugging
Face's ids differ from ours is refused by name.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, get_args

from bpe._native import TokenizerLists, read_tokenizer_json
from bpe.errors import (
    InexpressibleError,
    SpecialTokenError,
    TokenizerError,
    TokenizerFileError,
)
from bpe.files import uncollected
from bpe.formats import beam_bpe, tokenizer_config
from bpe.formats.cut_at_marks import cut_at_marks
from bpe.formats.export_checks import Loss, check_losses
from bpe.formats.format import Format, TokenizerFiles, id_limit
from bpe.formats.huggingface_cuts import (
    mixes_digits,
    read_normalizer,
    read_pre_tokenizer,
    write_normalizer,
    write_pre_tokenizer,
)
from bpe.formats.huggingface_superwords import (
    approximate,
    exact_pattern,
    joined_merges,
    read_pattern,
    read_superwords,
    write_pattern,
)
from bpe.formats.post_processor import check_post_processor
from bpe.formats.strict_json import Entry, read_bytes, read_json, shorten
from bpe.formats.token_text import (
    CoreVocab,
    read_byte_tokens,
    read_merges,
    read_tokens,
    read_vocab,
    token_names,
)
from bpe.models import ByteLevel, CharacterLevel, Model, WordPiece
from bpe.names import Dialect, LossName
from bpe.normalizer import MARK, PREPENDING
from bpe.parts import Merges, Parts
from bpe.pretokenizer import Pretokenizer
from bpe.special_tokens import TokenFlags, found_in_normalized

NAME = "tokenizer.json"
_VERSION = "1.0"
_ENTRIES = (
    *("version", "truncation", "padding", "added_tokens"),
    *("normalizer", "pre_tokenizer", "post_processor", "decoder", "model"),
)


def write(parts: Parts, path: Path, _: Collection[str], dialect: str) -> TokenizerFiles:
    """Return a tokenizer as tokenizer.json, and the roles of its special tokens in other files.

    A file of another name has no roles. Raises as :func:`to_json`.
    """
    roles = tokenizer_config.files(parts.roles) if path.name == NAME else {}
    known: dict[LossName, Loss | None] = {"roles": None} if path.name == NAME else {}
    losses = check_losses(parts, "tokenizer.json", (), known=known)
    text, reason = to_json(parts, dialect=dialect)
    contents = {path.parent / name: data for name, data in roles.items()}
    return TokenizerFiles({**contents, path: text.encode()}, losses, reason)


@uncollected()
def to_json(parts: Parts, *, dialect: str = "huggingface") -> tuple[str, str | None]:
    """Return the text of a tokenizer.json, and the reason for the dialect (None if Hugging Face's).

    Equal tokenizers give equal texts.

    Args:
        parts: what to write.
        dialect: ``beam-bpe`` allows the dialect for what Hugging Face's libraries cannot express.

    Raises:
        InexpressibleError: the tokenizer needs the dialect, which is not allowed.
        TokenizerError: no tokenizer.json can hold the tokenizer, or the dialect is unknown.
    """
    if dialect not in get_args(Dialect):
        known = ", ".join(get_args(Dialect))
        raise TokenizerError(f"unknown dialect {dialect!r:.60}: use one of {known}")
    names, entries, reason = _contents(parts, one_list=dialect == "huggingface")
    if reason is not None and dialect == "huggingface":
        other = ""
        if parts.superwords and _contents(approximate(parts), one_list=True)[2] is None:
            other = ", or `approximate` to write it without superwords"
        raise InexpressibleError(
            f"Hugging Face's tokenizer.json cannot express this tokenizer: {reason}; give "
            f"`dialect` beam-bpe to write a tokenizer.json that only bpe reads{other}"
        )
    head = {
        **dict.fromkeys(_ENTRIES),
        "version": beam_bpe.VERSION if reason else _VERSION,
        "added_tokens": write_added_tokens(parts),
        "post_processor": parts.post_processor,
        **entries,
    }
    has_merges = reason is not None or not isinstance(parts.model, WordPiece)
    lists = {"merges": parts.merges} if has_merges else {}
    if parts.superwords and reason is None:
        lists["merges"] = joined_merges(parts)
    elif parts.superwords:
        lists["superwords"] = parts.superwords
    return _joined(head, names, lists), reason


def why_dialect(parts: Parts) -> str | None:
    """Return the reason why tokenizer.json needs the dialect; None if the dialect is not needed."""
    return _contents(parts, one_list=False)[2]


def _contents(parts: Parts, *, one_list: bool) -> tuple[dict[int, str], dict[str, Any], str | None]:
    """Return the names of the tokens, the entries, and the reason for the dialect or None.

    Args:
        parts: what to write.
        one_list: write superwords as merges like others, under another pre-tokenizer.
    """
    try:
        return token_names(parts), _entries(parts, one_list=one_list), None
    except InexpressibleError as error:
        return beam_bpe.write_names(parts), beam_bpe.write_entries(parts), str(error)


def _entries(parts: Parts, *, one_list: bool) -> dict[str, Any]:
    """Return the entries for Hugging Face's libraries; ``model`` has no vocabulary or merges.

    Args:
        parts: what to write.
        one_list: as for :func:`_contents`.

    Raises:
        InexpressibleError: the libraries cannot express the tokenizer.
    """
    byte_level = isinstance(parts.model, ByteLevel)
    if parts.superwords and not one_list:
        raise InexpressibleError(
            f"its {len(parts.superwords):,} superwords are a list of merges of their own"
        )
    pre_tokenizer = (
        write_pattern(exact_pattern(parts))
        if parts.superwords
        else write_pre_tokenizer(parts.pretokenizer, byte_level=byte_level)
    )
    return {
        "normalizer": write_normalizer(parts.pretokenizer.normalizer),
        "pre_tokenizer": pre_tokenizer,
        "decoder": write_decoder(parts.model, parts.pretokenizer.normalizer),
        "model": write_model(parts),
    }


def _joined(
    head: Mapping[str, Any],
    names: Mapping[int, str],
    merges: Mapping[str, Merges],
) -> str:
    """Return the text of the file.

    The long lists are inserted by hand: json indents in plain Python, ten times slower.
    """
    # In one call, one name a line: JSON strings hold no line breaks.
    lines = json.dumps(list(names.values()), ensure_ascii=False, separators=("\n", ""))
    quoted = dict(zip(names, lines[1:-1].split("\n"), strict=True))
    lists = [f'"vocab": {{{_lines(f"{name}: {id_}" for id_, name in quoted.items())}}}']
    for name, triples in merges.items():
        sides = zip(triples.flat[::3], triples.flat[1::3], strict=True)
        texts = tuple(map(quoted.__getitem__, chain.from_iterable(sides)))
        pairs = _lines(["[\n        %s,\n        %s\n      ]"] * len(triples)) % texts
        lists.append(f'"{name}": [{pairs}]')
    end_of_model = "\n  }\n}"
    text = json.dumps(head, ensure_ascii=False, indent=2).removesuffix(end_of_model)
    return ",\n    ".join([text, *lists]) + end_of_model


def _lines(items: Iterable[str]) -> str:
    joined = ",\n      ".join(items)
    return f"\n      {joined}\n    " if joined else ""


def read(path: Path, *_: object) -> Parts:
    """Read a tokenizer.json.

    Raises:
        TokenizerFileError: the file is broken, or it says something that this library cannot
            honour exactly; the message names the file and the entry.
    """
    data = read_bytes(path)
    lists = read_tokenizer_json(data)
    if lists is not None:
        try:
            return _read_file(path, read_json(str(path), lists.head), lists)
        except TokenizerFileError:  # said of the file below, if it is one of the whole file
            pass
    return _read_file(path, read_json(str(path), data))


def _read_file(path: Path, file: Entry, lists: TokenizerLists | None = None) -> Parts:
    """Return the parts of a file whose vocabulary and merges the core may have read.

    Then a TokenizerFileError may only say that another model than one of bytes needs all of them.
    """
    file.object(*_ENTRIES)
    file.get("version").must_be(_VERSION, beam_bpe.VERSION, None)
    file.get("truncation").must_be(None)
    file.get("padding").must_be(None)
    if lists is not None:
        model = file.get("model").object().value
        file = replace(file, value={**file.value, "model": {**model, "vocab": lists}})
    if (known := read_pattern(file.get("pre_tokenizer"))) is not None:
        cut = write_pre_tokenizer(Pretokenizer(known[0]), byte_level=True)
        words = replace(file, value={**file.value, "pre_tokenizer": cut})
        if (spec := read_superwords(_read(path, words), *known)) is not None:
            return spec
    return _read(path, file)


def _read(path: Path, file: Entry) -> Parts:
    for name in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        file.get(name).bounded()
    entry, added_tokens = file.get("model"), file.get("added_tokens")
    is_dialect = file.get("version").value == beam_bpe.VERSION
    if is_dialect:
        model, cut = beam_bpe.model_of(entry), beam_bpe.read_cut(file)
    else:
        check_model_type(entry)  # first: it explains most other errors
        normalizer = read_normalizer(file.get("normalizer"))
        cuts = read_pre_tokenizer(file.get("pre_tokenizer"), normalizer)
        model = read_model(entry, byte_level=cuts.in_bytes)
        cut = Pretokenizer(pattern=cuts.steps, normalizer=(*normalizer, *cuts.marks))
    check_post_processor(file.get("post_processor"))
    _check_decoder(
        file.get("decoder"), None if is_dialect else write_decoder(model, cut.normalizer)
    )

    vocab = read_vocab(entry.get("vocab"))
    if isinstance(vocab, CoreVocab) and (is_dialect or not isinstance(model, ByteLevel)):
        entry.fail("the core reads the tokens of byte-level models alone")
    added, special, flags = read_added_tokens(added_tokens, vocab, own_ids=is_dialect)
    keeps_spaces = not is_dialect and cuts.marks == ("mark-spaces",)
    _check_searched(added_tokens, flags, cut, keeps_spaces=keeps_spaces)
    merges, superwords = Merges(), Merges()
    if is_dialect or not isinstance(model, WordPiece):
        merges = read_merges(entry.get("merges"), vocab)
    if "superwords" in entry.value:  # Hugging Face's have none
        superwords = read_merges(entry.get("superwords"), vocab)
    ignore_merges = entry.get("ignore_merges").boolean(default=False)
    names = entry.get("vocab")
    if not isinstance(model, ByteLevel):
        tokens = read_tokens(names, vocab, added, own=vocab)
    elif is_dialect:
        tokens = read_tokens(names, vocab, added, own=())
    else:
        tokens = read_byte_tokens(names, vocab, added, merges, ignore_merges=ignore_merges)
    processor = file.get("post_processor").value
    parts = Parts(
        tokens=tokens,
        merges=merges,
        superwords=superwords,
        pretokenizer=cut,
        ignore_merges=ignore_merges,
        model=model,
        special_tokens={content: id_ for content, id_ in added.items() if content in special},
        added_tokens={content: id_ for content, id_ in added.items() if content not in special},
        post_processor=processor,
        token_flags=flags,
    )
    if not is_dialect:
        parts = cut_at_marks(parts)
        if cuts.at_digits:
            _check_digits(file.get("pre_tokenizer"), parts)
        _check_single_words(added_tokens, flags, vocab, parts)
        _check_pieces(added_tokens, vocab, parts)
    if path.name != NAME:
        return parts
    roles = tokenizer_config.read_roles(
        path.parent,
        is_token=lambda token: token in added or token.encode() in parts.ids,
        post_processor=processor,
    )
    return replace(parts, roles=roles)


def _check_digits(entry: Entry, parts: Parts) -> None:
    """Check that no token is divided by a cut after ByteLevel, which may be inside a character."""
    if parts.ignore_merges:
        entry.fail("Digits after ByteLevel is not supported with ignore_merges")
    for result in parts.merges.results:
        token = parts.tokens.bytes_of(result)
        if mixes_digits(token):
            entry.fail(
                "Digits after ByteLevel is supported if no merge joins digits and other bytes; "
                f"one makes {shorten(token)}"
            )


def _check_pieces(entry: Entry, vocab: Container[str], parts: Parts) -> None:
    """Check that no added token outside the vocabulary would be a piece of words here."""
    if not isinstance(parts.model, WordPiece):
        return
    prefix, normalizer = parts.model.prefix, parts.pretokenizer.normalizer
    for content in sorted(parts.added_tokens):
        if content not in vocab and (normalizer or (prefix and content.startswith(prefix))):
            entry.fail(
                f"{shorten(content)} is not in the vocabulary of the model. It would be a piece of "
                "words here, but not in Hugging Face's tokenizers: add it to the vocabulary"
            )


def _check_decoder(entry: Entry, ours: Mapping[str, Any] | None) -> None:
    """Check that the decoder is missing or is that of the model.

    If the decoder of the model is a Sequence, a Metaspace is allowed, too.
    """
    if entry.value is None:
        return
    if ours is None:
        entry.must_be(None)
    elif ours["type"] != "Sequence":
        entry.object().get("type").must_be(ours["type"])
    elif entry.object().get("type").string() != "Metaspace" and entry.value != ours:
        entry.fail(
            "decodes in another way than the normalizer, the pre-tokenizer and the model imply: "
            f"supported here: {json.dumps(ours, ensure_ascii=False)}"
        )


# The settings of the models, without vocabulary and merges.
_BPE = {
    "type": "BPE",
    "dropout": None,
    "unk_token": None,
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "fuse_unk": False,
    "byte_fallback": False,
    "ignore_merges": False,
}
_WORD_PIECE = ("type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word")


def write_model(parts: Parts) -> dict[str, Any]:
    """Return the settings of the model, without vocabulary and merges.

    Raises:
        InexpressibleError: Hugging Face's libraries have no such model.
    """
    model = parts.model
    if isinstance(model, WordPiece):
        values = ("WordPiece", model.unknown, model.prefix, model.max_characters)
        return dict(zip(_WORD_PIECE, values, strict=True))
    written = {**_BPE, "ignore_merges": parts.ignore_merges}
    if isinstance(model, ByteLevel):
        return written
    if model.end_of_word:
        raise InexpressibleError(
            f"the end of word {model.end_of_word!r} is a symbol of its own here, and part of "
            "the last character there"
        )
    if model.unknown is None and not model.byte_fallback:
        raise InexpressibleError(
            "a character without a token is an error here, and dropped silently there"
        )
    written["unk_token"] = model.unknown
    return {**written, "fuse_unk": model.fuse_unknown, "byte_fallback": model.byte_fallback}


def write_decoder(model: Model, normalizer: Sequence[str]) -> dict[str, Any]:
    """Return the ``decoder`` of a model after the steps of a normalizer."""
    if isinstance(model, WordPiece):
        return {"type": "WordPiece", "prefix": model.prefix, "cleanup": False}
    if isinstance(model, CharacterLevel):
        replace = {"type": "Replace", "pattern": {"String": MARK}, "content": " "}
        strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
        steps: list[dict[str, Any]] = [
            *([replace] if "mark-spaces" in normalizer else []),
            *([{"type": "ByteFallback"}] if model.byte_fallback else []),
            {"type": "Fuse"},
            *([] if PREPENDING.isdisjoint(normalizer) else [strip]),
        ]
        return {"type": "Sequence", "decoders": steps} if len(steps) > 1 else steps[0]
    return {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}


def read_model(entry: Entry, *, byte_level: bool) -> Model:
    """Return the model of an entry, without its vocabulary.

    Args:
        entry: ``model``.
        byte_level: whether the pre-tokenizer turns text into bytes.

    Raises:
        TokenizerFileError: the model or a setting is not supported.
    """
    kind = entry.get("type")
    if kind.value == "WordPiece":
        return _read_word_piece(entry, byte_level=byte_level)
    entry.object(*_BPE, "vocab", "merges")
    entry.get("dropout").must_be(None, 0, 0.0)
    entry.get("continuing_subword_prefix").must_be(None, "")
    suffix = entry.get("end_of_word_suffix")
    if suffix.value not in (None, ""):
        suffix.fail(
            f"{shorten(suffix.value)} is not supported: it is part of the last character there, "
            "and could only be a symbol of its own here"
        )
    unknown = entry.get("unk_token").optional()
    fuse = entry.get("fuse_unk").boolean(default=False)
    falls_back = entry.get("byte_fallback").boolean(default=False)
    # These are for bytes without a token. In a byte-level model every byte has one (the tokenizer
    # checks that), so they have no effect.
    if byte_level:
        return ByteLevel()
    if not unknown and not falls_back:
        entry.get("unk_token").fail(
            "missing, and the pre-tokenizer does not end in ByteLevel: Hugging Face's tokenizers "
            "then drop characters without a token silently, which is not supported"
        )
    return CharacterLevel(
        end_of_word="", unknown=unknown or None, byte_fallback=falls_back, fuse_unknown=fuse
    )


def check_model_type(entry: Entry) -> None:
    """Check that a model is BPE or WordPiece."""
    kind = entry.object().get("type")
    if kind.value is None and "merges" not in entry.value:  # old files do not name the type
        kind.fail("no model type, and no merges: only BPE and WordPiece are supported")
    if kind.value is not None and kind.string() not in ("BPE", "WordPiece"):
        kind.fail(f"the model {shorten(kind.value)} is not supported: only BPE and WordPiece are")


def _read_word_piece(entry: Entry, *, byte_level: bool) -> WordPiece:
    entry.object(*_WORD_PIECE, "vocab")
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


_NO_FLAGS = TokenFlags()
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized")


def write_added_tokens(parts: Parts) -> list[dict[str, Any]]:
    """Return the special and added tokens by id."""
    return [
        {
            "id": id_,
            "content": content,
            **{name: getattr(parts.token_flags.get(content, _NO_FLAGS), name) for name in _FLAGS},
            "special": content in parts.special_tokens,
        }
        for content, id_ in parts.cut_tokens.items()
    ]


def read_added_tokens(
    entry: Entry, vocab: Mapping[str, int], *, own_ids: bool = False
) -> tuple[dict[str, int], set[str], dict[str, TokenFlags]]:
    """Return the ids of the added tokens of a file, the special ones, and their search flags.

    Args:
        entry: ``added_tokens``.
        vocab: that of the model.
        own_ids: whether the ids in ``added_tokens`` count. Hugging Face takes those of the
            vocabulary, or the next free ones.

    Raises:
        TokenizerFileError: a token is broken.
    """
    ids: dict[str, int] = {}
    special: set[str] = set()
    flags: dict[str, TokenFlags] = {}
    free = len(vocab)
    limit = id_limit(len(vocab))
    for item in () if entry.value is None else entry.items():
        item.object("id", "content", "special", *_FLAGS)
        content = item.get("content").string()
        if not content or content in ids:
            item.get("content").fail(f"{shorten(content)} is empty or added twice")
        id_ = item.get("id").value
        expected = vocab.get(content, free)
        if own_ids and (type(id_) is not int or not 0 <= id_ < limit):
            item.get("id").fail(f"{shorten(id_)} is not an id from 0 to {limit - 1}")
        if not own_ids and (type(id_) is not int or id_ != expected):
            item.get("id").fail(
                f"{shorten(id_)} is not the id that {shorten(content)} has in Hugging Face's "
                f"tokenizers: {expected}"
            )
        ids[content] = id_
        free = max(free, expected + 1)
        if item.get("special").boolean(default=False):
            special.add(content)
        flags[content] = TokenFlags(
            **{name: item.get(name).boolean(default=False) for name in _FLAGS[:-1]},
            normalized=item.get("normalized").boolean(default=not item.get("special").value),
        )
    return ids, special, flags


def _check_searched(
    entry: Entry, flags: Mapping[str, TokenFlags], cut: Pretokenizer, *, keeps_spaces: bool
) -> None:
    """Check that tokens are found where Hugging Face's tokenizers find them.

    Args:
        entry: ``added_tokens``.
        flags: of it.
        cut: normalizes texts.
        keeps_spaces: whether tokens are searched for there before spaces become marks, which
            `found_in_normalized` takes for a step of the normalizer.
    """
    try:
        found = found_in_normalized(flags, cut.normalizer)
    except SpecialTokenError as error:
        entry.fail(f"{error}, where Hugging Face's tokenizers search for it")
    if found and keeps_spaces:
        entry.fail(
            f"normalized: true of {shorten(next(iter(found)))} is not supported with a Metaspace "
            "that puts no mark before texts, if a normalizer, a space in a token, or lstrip, "
            "rstrip or single_word decides where such tokens are found"
        )


def _check_single_words(
    entry: Entry, flags: Mapping[str, TokenFlags], vocab: Mapping[str, int], parts: Parts
) -> None:
    """Check that Hugging Face's model makes no single_word token out of plain text.

    Raises:
        TokenizerFileError: a single_word token is in the vocabulary, and the model looks pre-tokens
            or their parts up there.
    """
    for content, flag in flags.items():
        looked_up = (
            isinstance(parts.model, WordPiece)
            or parts.ignore_merges
            or parts.model.is_symbol(content.encode())
        )
        if flag.single_word and content in vocab and looked_up:
            entry.fail(
                f"single_word is not supported of {shorten(content)}, which is in the vocabulary: "
                "beside a letter it is text there, and the model makes this token of it"
            )


FORMAT = Format(
    files=NAME,
    names=("*.json",),
    usual_names=(NAME,),
    companions=lambda path: {
        path.parent / name: False for name in tokenizer_config.NAMES if path.name == NAME
    },
    read=read,
    write=write,
)
