"""The spelling of tokens and merges in JSON files: bytes in GPT-2's alphabet, or strings."""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterator, Mapping

from bpe._native import TokenizerLists
from bpe.byte_alphabet import from_text, is_utf8, to_text
from bpe.errors import InexpressibleError
from bpe.formats.format import id_limit
from bpe.formats.strict_json import Entry, describe, shorten
from bpe.models import ByteLevel
from bpe.parts import Merges, Parts
from bpe.token_table import TokenTable


def token_names(parts: Parts, *, kind: str = "tokenizer.json") -> dict[int, str]:
    """Return the text of each token in the file, by id.

    Raises:
        InexpressibleError: two tokens have the same text.
    """
    tokens = {id_: token for id_, token in enumerate(parts.tokens) if token is not None}
    if not isinstance(parts.model, ByteLevel):
        return {id_: token.decode() for id_, token in tokens.items()}  # all different
    names = {id_: to_text(token) for id_, token in tokens.items()}
    cut_out = parts.cut_texts
    names |= cut_out
    merging = cut_out.keys() & parts.merges.flat
    for id_, content in cut_out.items():
        if _is_ambiguous(content, merging=id_ in merging, ignore_merges=parts.ignore_merges):
            raise InexpressibleError(
                f"{kind} cannot hold the special or added token {content!r}: "
                "it is spelled there like other bytes"
            )
    if len(set(names.values())) != len(names):
        ids: dict[str, int] = {}
        for id_, name in names.items():
            if name in ids:
                raise InexpressibleError(
                    f"{kind} cannot hold both the tokens {ids[name]} and {id_}: it spells "
                    f"a special token and other bytes both as {name!r}"
                )
            ids[name] = id_
    return names


class CoreVocab(Mapping[str, int]):
    """The ids by token text as the core has read them, without a dict."""

    def __init__(self, lists: TokenizerLists) -> None:
        self.lists = lists

    def __getitem__(self, name: str) -> int:
        id_ = self.lists.find(name)
        if id_ is None:
            raise KeyError(name)
        return id_

    def __iter__(self) -> Iterator[str]:
        return iter(self.lists.names())

    def __len__(self) -> int:
        return len(self.lists)


def read_vocab(entry: Entry) -> Mapping[str, int]:
    """Return the ids by token text, unique, and dense enough to be an index.

    Raises:
        TokenizerFileError: the entry is not an object with such ids.
    """
    if isinstance(entry.value, TokenizerLists):
        return CoreVocab(entry.value)
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


def read_merges(entry: Entry, vocab: Mapping[str, int]) -> Merges:
    """Merges as pairs or, in older files, as strings with a space between left and right.

    The core may have read them.

    Raises:
        TokenizerFileError: a merge has another form, or is of tokens that are not in ``vocab``.
    """
    if isinstance(vocab, CoreVocab):
        return Merges.of(vocab.lists.merges)
    if not isinstance(entry.value, list):
        entry.fail(f"expected a list, found {describe(entry.value)}")
    flat = array("I")
    for number, pair in enumerate(entry.value):
        names = pair.split(" ") if isinstance(pair, str) else pair
        if not isinstance(names, list) or len(names) != 2:
            entry.at(number).fail("is not a pair of two tokens")
        left, right = names
        try:
            flat.extend((vocab[left], vocab[right], vocab[left + right]))
        except TypeError:
            entry.at(number).fail("is not a pair of two strings")
        except KeyError as error:
            unknown = error.args[0]
            made = "" if unknown in names else ", which it makes,"
            entry.at(number).fail(f"{shorten(unknown)}{made} is not in the vocabulary")
    return Merges(flat)


def read_tokens(
    entry: Entry,
    vocab: Mapping[str, int],
    added: Mapping[str, int],
    *,
    own: Container[str],
    shared: bool = True,
) -> TokenTable:
    """Return the bytes of each id: spelled in the byte alphabet, or added tokens in UTF-8.

    Args:
        entry: the vocabulary, for errors.
        vocab: its ids by name.
        added: the ids of added tokens.
        own: the names that are their own bytes.
        shared: whether an added token that is not one of ``own`` may have the id of a token with
            the same bytes.

    Raises:
        TokenizerFileError: a token is empty, not in the byte alphabet, or has the id of another.
    """
    if isinstance(vocab, CoreVocab):
        own_ids = [id_ for content, id_ in added.items() if content in own]
        columns = vocab.lists.tokens(own_ids)
        if columns is None:
            entry.fail("a token is not in the byte alphabet")
        table = TokenTable.of_columns(*columns)
    else:
        table = TokenTable.of(_spelled(entry, vocab, own))
    extra: dict[int, bytes] = {}
    for content, id_ in added.items():
        data = content.encode()  # checked with the vocabulary, or when it was read
        known = extra.get(id_) or (table[id_] if id_ < len(table) else None)
        if known is None:
            extra[id_] = data
        elif known != data or not (shared or content in own):
            entry.fail(f"{shorten(content)} is added under the id {id_} of another token")
    return table.extended(extra)


def read_byte_tokens(
    entry: Entry,
    vocab: Mapping[str, int],
    added: Mapping[str, int],
    merges: Merges,
    *,
    ignore_merges: bool = False,
) -> TokenTable:
    """Return the bytes of each id of a byte-level model, with added tokens in its vocabulary.

    Raises:
        TokenizerFileError: as :func:`read_tokens`, or an added token is ambiguous.
    """
    own = {content: id_ for content, id_ in added.items() if content in vocab}
    table = read_tokens(entry, vocab, added, own=own, shared=False)
    merging = set(own.values()).intersection(merges.flat)
    for content, id_ in own.items():
        if _is_ambiguous(content, merging=id_ in merging, ignore_merges=ignore_merges):
            entry.fail(f"the added token {shorten(content)} is spelled like other bytes")
    return table


def _spelled(entry: Entry, vocab: Mapping[str, int], own: Container[str]) -> list[bytes | None]:
    """Return the bytes that names spell; those in ``own`` are their own bytes."""
    tokens: list[bytes | None] = [None] * (max(vocab.values(), default=-1) + 1)
    for name, id_ in vocab.items():
        if not name:
            entry.fail(f"the token with the id {id_} is empty")
        try:
            tokens[id_] = name.encode() if name in own else from_text(name)
        except UnicodeEncodeError:
            entry.fail(f"{shorten(name)} holds a lone surrogate, which has no UTF-8")
        except KeyError as error:
            entry.fail(
                f"{shorten(name)}: {error} is not in the byte alphabet; only byte-level "
                "tokenizers are supported"
            )
    return tokens


def spelled_bytes(name: str) -> bytes | None:
    """Return the bytes that a name spells in the byte alphabet, if not its own UTF-8."""
    try:
        spelled = from_text(name)
    except KeyError:
        return None
    return spelled if spelled != name.encode() else None


def _is_ambiguous(content: str, *, merging: bool, ignore_merges: bool) -> bool:
    """Return whether the name of an added token also spells other bytes that text can produce.

    So if it is part of a merge or a single byte; or if pre-tokens, which are well-formed UTF-8 in
    Hugging Face's tokenizers, are looked up in the vocabulary.
    """
    if merging:
        return to_text(content.encode()) != content
    spelled = spelled_bytes(content)
    return spelled is not None and (len(spelled) == 1 or (ignore_merges and is_utf8(spelled)))
