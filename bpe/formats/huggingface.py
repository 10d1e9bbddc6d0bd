"""``tokenizer.json``, the file of Hugging Face's ``tokenizers`` and ``transformers``.

Written as ``tokenizers`` 0.2x writes it. Of what the format can say, byte-level BPE is read;
whatever would make Hugging Face's ids differ from ours is refused by name.
"""

from __future__ import annotations

import json
from array import array
from itertools import chain
from typing import TYPE_CHECKING, Any

from bpe.errors import TokenizerError
from bpe.formats.byte_alphabet import from_text, to_text
from bpe.formats.ids import id_limit
from bpe.formats.parts import TokenizerParts
from bpe.formats.pre_tokenizers import read_pre_tokenizer, write_pre_tokenizer
from bpe.formats.strict_json import Entry, describe, read_bytes, read_json, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from bpe.tokenizer import Tokenizer

_MAX_COMPARED = 100_000_000  # characters against characters: seconds

_BYTE_LEVEL_DECODER = {
    "type": "ByteLevel",
    "add_prefix_space": True,
    "trim_offsets": True,
    "use_regex": True,
}


def to_json(tokenizer: Tokenizer) -> str:
    """A tokenizer as the text of its tokenizer.json; equal tokenizers give equal texts.

    Raises:
        TokenizerError: the format cannot express it.
    """
    names = token_names(tokenizer)
    added = {**tokenizer.special_tokens, **tokenizer.added_tokens}
    head = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": id_,
                "content": content,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": content in tokenizer.special_tokens,
            }
            for content, id_ in sorted(added.items(), key=lambda item: item[1])
        ],
        "normalizer": None,
        "pre_tokenizer": write_pre_tokenizer(tokenizer.pretokenizer),
        "post_processor": tokenizer.post_processor,
        "decoder": _BYTE_LEVEL_DECODER,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": tokenizer.ignore_merges,
        },
    }
    text = json.dumps(head, ensure_ascii=False, indent=2)
    # The two long lists are put in by hand: json indents in plain Python, ten times slower.
    quoted = {id_: json.dumps(name, ensure_ascii=False) for id_, name in names.items()}
    vocab = _lines(f"{name}: {id_}" for id_, name in quoted.items())
    merges = _lines(
        f"[\n        {quoted[left]},\n        {quoted[right]}\n      ]"
        for left, right, _ in tokenizer.merges
    )
    end_of_model = "\n  }\n}"
    return (
        f'{text.removesuffix(end_of_model)},\n    "vocab": {{{vocab}}},\n    "merges": [{merges}]'
        f"{end_of_model}"
    )


def _lines(items: Iterable[str]) -> str:
    joined = ",\n      ".join(items)
    return f"\n      {joined}\n    " if joined else ""


def token_names(tokenizer: Tokenizer, *, kind: str = "tokenizer.json") -> dict[int, str]:
    """How each token is spelled in the file, by id.

    Raises:
        TokenizerError: two are spelled alike.
    """
    whole = {id_: content for content, id_ in tokenizer.special_tokens.items()}
    whole |= {id_: content for content, id_ in tokenizer.added_tokens.items()}
    names = {
        id_: whole[id_] if id_ in whole else to_text(token)
        for id_, token in enumerate(tokenizer.tokens)
        if token is not None
    }
    merging = {id_ for merge in tokenizer.merges for id_ in merge if id_ in whole}
    for id_, content in whole.items():
        if _is_ambiguous(content, merging=id_ in merging, ignore_merges=tokenizer.ignore_merges):
            raise TokenizerError(
                f"{kind} cannot hold the special or added token {content!r}: "
                "it is spelled there like other bytes"
            )
    if len(set(names.values())) != len(names):
        ids: dict[str, int] = {}
        for id_, name in names.items():
            if name in ids:
                raise TokenizerError(
                    f"{kind} cannot hold both the tokens {ids[name]} and {id_}: it spells "
                    f"a special token and other bytes both as {name!r}"
                )
            ids[name] = id_
    return names


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
    file.get("version").must_be("1.0", None)
    file.get("truncation").must_be(None)
    file.get("padding").must_be(None)
    _refuse_normalizer(file.get("normalizer"))
    _check_model(file.get("model"))  # before the rest: what it is decides what is worth saying
    pretokenizer = read_pre_tokenizer(file.get("pre_tokenizer"))
    _check_post_processor(file.get("post_processor"))
    decoder = file.get("decoder")
    if decoder.value is not None:
        decoder.object().get("type").must_be("ByteLevel")

    vocab = read_vocab(file.get("model").get("vocab"))
    added, special = _read_added_tokens(file.get("added_tokens"), vocab)
    merges = read_merges(file.get("model").get("merges"), vocab)
    ignore_merges = file.get("model").get("ignore_merges").boolean(default=False)
    tokens = read_tokens(
        file.get("model").get("vocab"), vocab, added, merges, ignore_merges=ignore_merges
    )
    return TokenizerParts(
        tokens=tokens,
        merges=merges,
        pretokenizer=pretokenizer,
        special_tokens={content: id_ for content, id_ in added.items() if content in special},
        added_tokens={content: id_ for content, id_ in added.items() if content not in special},
        ignore_merges=ignore_merges,
        post_processor=file.get("post_processor").value,
    )


def _refuse_normalizer(entry: Entry) -> None:
    if entry.value is None:
        return
    kind = entry.object().get("type")
    if kind.value == "Sequence" and not list(entry.get("normalizers").items()):
        return
    kind.fail(
        f"the normalizer {shorten(kind.value)} changes texts before they are encoded, which is "
        "not supported"
    )


def _check_post_processor(entry: Entry) -> None:
    """Allow those that leave alone the ids of ``encode(text, add_special_tokens=False)``."""
    if entry.value is None:
        return
    kind = entry.object().get("type")
    if kind.value == "Sequence":
        for item in entry.object("type", "processors").get("processors").items():
            _check_post_processor(item)
    else:
        kind.must_be("ByteLevel", "TemplateProcessing")


def _check_model(model: Entry) -> None:
    model.object()
    kind = model.get("type")
    if kind.value is None and "merges" not in model.value:  # old files do not name the type
        kind.fail("no model type, and no merges: only BPE is supported")
    if kind.value is not None and kind.string() != "BPE":
        kind.fail(f"the model {kind.value} is not supported: only BPE is")
    model.object(
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
    model.get("dropout").must_be(None, 0, 0.0)
    model.get("continuing_subword_prefix").must_be(None, "")
    model.get("end_of_word_suffix").must_be(None, "")
    # unk_token, fuse_unk and byte_fallback say what becomes of a byte without a token. Every byte
    # has one here (the tokenizer checks that), so they change nothing.
    if model.get("unk_token").value is not None:
        model.get("unk_token").string()
    model.get("fuse_unk").boolean(default=False)
    model.get("byte_fallback").boolean(default=False)


def read_vocab(entry: Entry) -> dict[str, int]:
    """The vocabulary as it is spelled, its ids unique and dense enough to be an index.

    Raises:
        TokenizerFileError: it is not an object of such ids.
    """
    vocab: dict[str, int] = entry.object().value
    limit = id_limit(len(vocab))
    names: dict[int, str] = {}
    for name, id_ in vocab.items():
        if type(id_) is not int or not 0 <= id_ < limit:
            entry.get(name).fail(f"{shorten(id_)} is not an id from 0 to {limit - 1}")
        if id_ in names:
            entry.fail(f"{shorten(names[id_])} and {shorten(name)} have the same id {id_}")
        names[id_] = name
    return vocab


def read_merges(entry: Entry, vocab: Mapping[str, int]) -> array[int]:
    """Merges as pairs or, in older files, as strings with a space between left and right.

    Returns:
        Ids: left, right, result, left, ...

    Raises:
        TokenizerFileError: a merge has another form, or is of tokens that are not in ``vocab``.
    """
    if not isinstance(entry.value, list):
        entry.fail(f"expected a list, found {describe(entry.value)}")
    pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in entry.value]
    lists: list[Any] = [pair if isinstance(pair, list) else () for pair in pairs]
    try:
        ids = [vocab[name] for a, b in lists for name in (a, b, a + b)]
        return array("I", ids)
    except (KeyError, TypeError, ValueError):
        for item, pair in zip(entry.items(), pairs, strict=True):
            _refuse_merge(item, pair, vocab)
        raise


def _refuse_merge(item: Entry, pair: Any, vocab: Mapping[str, int]) -> None:
    """Say what is wrong with a merge, if anything is."""
    if not isinstance(pair, list) or len(pair) != 2:
        item.fail("is not a pair of two tokens")
    for name in pair:
        if not isinstance(name, str) or name not in vocab:
            item.fail(f"{shorten(name)} is not in the vocabulary")
    made = "".join(pair)
    if made not in vocab:
        item.fail(f"{shorten(made)}, which it makes, is not in the vocabulary")


def read_tokens(
    entry: Entry,
    vocab: Mapping[str, int],
    added: Mapping[str, int],
    merges: Iterable[int],
    *,
    ignore_merges: bool = False,
) -> list[bytes | None]:
    """The bytes of each id: from the byte alphabet, or as they stand for tokens that are added.

    Raises:
        TokenizerFileError: a token is not in the byte alphabet, or an added one is ambiguous.
    """
    size = max(chain(vocab.values(), added.values()), default=-1) + 1
    tokens: list[bytes | None] = [None] * size
    for name, id_ in vocab.items():
        if name in added:
            continue
        try:
            tokens[id_] = from_text(name)
        except KeyError as error:
            entry.fail(
                f"{shorten(name)}: {error} is not in the byte alphabet; only byte-level tokenizers "
                "are supported"
            )
        if not name:
            entry.fail(f"the token with the id {id_} is empty")
    for content, id_ in added.items():
        if tokens[id_] is not None:
            entry.fail(f"{shorten(content)} is added under the id {id_} of another token")
        try:
            tokens[id_] = content.encode()
        except UnicodeEncodeError:
            entry.fail(f"{shorten(content)} holds a lone surrogate, which has no UTF-8")
    merging = set(added.values()).intersection(merges)
    for content in added.keys() & vocab.keys():
        if _is_ambiguous(content, merging=added[content] in merging, ignore_merges=ignore_merges):
            entry.fail(f"the added token {shorten(content)} is spelled like other bytes")
    return tokens


def spelled_bytes(name: str) -> bytes | None:
    """The other bytes that a name means in the byte alphabet; None where there are none."""
    try:
        spelled = from_text(name)
    except KeyError:
        return None
    return spelled if spelled != name.encode() else None


def _is_ambiguous(content: str, *, merging: bool, ignore_merges: bool) -> bool:
    """Whether texts could hold an added token as other bytes, which its name spells too.

    They could if it takes part in merges, if it is a single byte, or if a pre-token, which in
    Hugging Face's tokenizers is well-formed UTF-8, is looked up in the vocabulary.
    """
    if merging:
        return to_text(content.encode()) != content
    spelled = spelled_bytes(content)
    return spelled is not None and (len(spelled) == 1 or (ignore_merges and _is_utf8(spelled)))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _read_added_tokens(entry: Entry, vocab: Mapping[str, int]) -> tuple[dict[str, int], set[str]]:
    """All added tokens with their ids, and which of them are special."""
    added: dict[str, int] = {}
    special: set[str] = set()
    normalized: set[str] = set()
    if entry.value is None:
        return added, special
    free = len(vocab)
    for item in entry.items():
        item.object("id", "content", "single_word", "lstrip", "rstrip", "normalized", "special")
        content = item.get("content").string()
        for option in ("single_word", "lstrip", "rstrip"):
            if item.get(option).boolean(default=False):
                item.get(option).fail(f"true is not supported (added token {shorten(content)})")
        if not content or content in added:
            item.get("content").fail(f"{shorten(content)} is empty or added twice")
        # Hugging Face does not take the id from here: it is the vocabulary's, or the next free.
        expected = vocab.get(content, free)
        if type(item.get("id").value) is not int or item.get("id").value != expected:
            item.get("id").fail(
                f"{shorten(item.get('id').value)} is not the id that {shorten(content)} has in "
                f"Hugging Face's tokenizers: {expected}"
            )
        added[content] = expected
        free = max(free, expected + 1)
        if item.get("special").boolean(default=False):
            special.add(content)
        if item.get("normalized").boolean(default=not item.get("special").value):
            normalized.add(content)
    _check_one_pass(entry, normalized, added.keys() - normalized)
    return added, special


def _check_one_pass(entry: Entry, normalized: set[str], others: set[str]) -> None:
    """Refuse tokens that overlap across ``normalized``: Hugging Face looks for the others first.

    Where none overlap, two searches find what one finds.
    """
    if sum(map(len, normalized)) * sum(map(len, others)) > _MAX_COMPARED:
        entry.fail(
            "too many or too long added tokens differ in normalized; give all of them the same"
        )
    for a in normalized:
        for b in others:
            if a in b or b in a or _overlap(a, b) or _overlap(b, a):
                entry.fail(
                    f"{shorten(a)} and {shorten(b)} overlap and differ in normalized, so they are "
                    "looked for one after the other, which is not supported"
                )


def _overlap(a: str, b: str) -> bool:
    """Whether an end of ``a`` begins ``b``."""
    return any(b.startswith(a[i:]) for i in range(1, len(a)))
