"""``*.model`` of SentencePiece, of type BPE, as Llama 2 and Mistral were published.

The file is a protocol buffer (``sentencepiece_model.proto`` of that project). Two neighbours merge
if their characters together are a piece, the one of highest score first, the leftmost of equals.
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn

from bpe._native import merges_of_ranks, merges_that_happen
from bpe.errors import TokenizerError, TokenizerFileError
from bpe.formats.cut_at_marks import cut_at_marks
from bpe.formats.export_checks import KINDS, Loss, check_implied, check_losses
from bpe.formats.format import Format, TokenizerFiles
from bpe.formats.strict_json import read_bytes, shorten
from bpe.models import BYTE_TOKENS, CharacterLevel
from bpe.names import LossName
from bpe.parts import Merges, Parts
from bpe.pretokenizer import Pretokenizer
from bpe.roles import Roles
from bpe.token_table import TokenTable

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)
_KINDS = {_USER_DEFINED: "user-defined", _UNUSED: "unused"}  # not supported
_TYPES = {1: "Unigram", 3: "Word", 4: "Char"}
_BPE = 2

# The fields that are read or written, of sentencepiece_model.proto. Strings are read as bytes: in a
# broken file they may not be UTF-8.
_SCHEMA = """
name: "model.proto" package: "model" syntax: "proto2"
message_type {
  name: "Piece"
  field { name: "piece" number: 1 type: TYPE_BYTES }
  field { name: "score" number: 2 type: TYPE_FLOAT }
  field { name: "type" number: 3 type: TYPE_INT32 default_value: "1" }
}
message_type {
  name: "Trainer"
  field { name: "model_type" number: 3 type: TYPE_INT32 default_value: "1" }
  field { name: "vocab_size" number: 4 type: TYPE_INT32 default_value: "8000" }
  field { name: "treat_whitespace_as_suffix" number: 24 type: TYPE_BOOL default_value: "false" }
  field { name: "byte_fallback" number: 35 type: TYPE_BOOL default_value: "false" }
  field { name: "unk_id" number: 40 type: TYPE_INT32 default_value: "0" }
  field { name: "bos_id" number: 41 type: TYPE_INT32 default_value: "1" }
  field { name: "eos_id" number: 42 type: TYPE_INT32 default_value: "2" }
  field { name: "pad_id" number: 43 type: TYPE_INT32 default_value: "-1" }
  field { name: "unk_piece" number: 45 type: TYPE_BYTES default_value: "<unk>" }
  field { name: "bos_piece" number: 46 type: TYPE_BYTES default_value: "<s>" }
  field { name: "eos_piece" number: 47 type: TYPE_BYTES default_value: "</s>" }
  field { name: "pad_piece" number: 48 type: TYPE_BYTES default_value: "<pad>" }
}
message_type {
  name: "Normalizer"
  field { name: "name" number: 1 type: TYPE_BYTES }
  field { name: "precompiled_charsmap" number: 2 type: TYPE_BYTES }
  field { name: "add_dummy_prefix" number: 3 type: TYPE_BOOL default_value: "true" }
  field { name: "remove_extra_whitespaces" number: 4 type: TYPE_BOOL default_value: "true" }
  field { name: "escape_whitespaces" number: 5 type: TYPE_BOOL default_value: "true" }
}
message_type {
  name: "Model"
  field { name: "pieces" number: 1 label: LABEL_REPEATED type_name: ".model.Piece" }
  field { name: "trainer_spec" number: 2 type_name: ".model.Trainer" }
  field { name: "normalizer_spec" number: 3 type_name: ".model.Normalizer" }
  field { name: "denormalizer_spec" number: 5 type_name: ".model.Normalizer" }
}
"""


def read(path: Path, *_: object) -> Parts:
    """Read a .model file of SentencePiece.

    Raises:
        TokenizerFileError: the file is broken, or of a tokenizer that this library cannot honour
            exactly; the message names the part at fault.
    """

    def fail(what: str) -> NoReturn:
        raise TokenizerFileError(f"{path}: {what}")

    file = _parsed(path, read_bytes(path))
    _check_settings(file, fail)
    for piece in file.pieces:
        _check_piece(piece, fail)
    tokens: list[bytes] = [piece.piece for piece in file.pieces]
    ids = {token: id_ for id_, token in enumerate(tokens)}
    if len(ids) != len(tokens) or b"" in ids:
        fail("a piece is empty or a duplicate")
    of_kind = {
        kind: [piece.piece.decode() for piece in file.pieces if piece.type == kind]
        for kind in (_UNKNOWN, _CONTROL, _BYTE)
    }
    if len(of_kind[_UNKNOWN]) != 1:
        fail(f"{len(of_kind[_UNKNOWN])} unknown pieces: expected one")
    falls_back = bool(file.trainer_spec.byte_fallback)
    if falls_back != (sorted(of_kind[_BYTE]) == [token.decode() for token in BYTE_TOKENS]):
        fail("the pieces of bytes are not those that byte_fallback needs")
    unknown = of_kind[_UNKNOWN][0]
    model = CharacterLevel(
        end_of_word="", unknown=unknown, byte_fallback=falls_back, fuse_unknown=True
    )
    merges = _merges(file.pieces, ids, fail)
    prepended = ("prepend-mark",) if file.normalizer_spec.add_dummy_prefix else ()
    cut = Pretokenizer("none", normalizer=(*prepended, "mark-spaces"))
    special = {content: ids[content.encode()] for content in (unknown, *of_kind[_CONTROL])}
    trainer = file.trainer_spec
    named = {"bos": trainer.bos_piece, "eos": trainer.eos_piece, "pad": trainer.pad_piece}
    controls = {content.encode(): content for content in of_kind[_CONTROL]}
    roles = {role: controls[token] for role, token in named.items() if token in controls}
    return cut_at_marks(
        Parts(
            tokens=TokenTable.of(tokens),
            merges=merges,
            pretokenizer=cut,
            special_tokens=special,
            model=model,
            roles=Roles(unk=unknown, **roles),
        )
    )


def _check_piece(piece: Any, fail: Any) -> None:
    try:
        text = piece.piece.decode()
    except UnicodeDecodeError:
        fail(f"the piece {shorten(piece.piece)} is not UTF-8")
    if piece.type not in (_NORMAL, _UNKNOWN, _CONTROL, _BYTE):
        kind = _KINDS.get(piece.type, piece.type)
        fail(f"the piece {shorten(text)} of type {kind} is not supported")
    if not isfinite(piece.score):
        fail(f"the piece {shorten(text)} has the score {piece.score}")


def _check_settings(file: Any, fail: Any) -> None:
    """Check that the settings are of a tokenizer that this library can honour."""
    kind = file.trainer_spec.model_type
    if kind != _BPE:
        fail(f"a SentencePiece model of type {_TYPES.get(kind, kind)}: only BPE is supported")
    for which, spec in (("", file.normalizer_spec), ("de", file.denormalizer_spec)):
        if spec.precompiled_charsmap:
            name = shorten(spec.name.decode("utf-8", "replace"))
            fail(
                f"the {which}normalizer {name} is not supported: only identity is "
                "(a precompiled_charsmap maps characters in its own way)"
            )
    if file.normalizer_spec.remove_extra_whitespaces:
        fail("remove_extra_whitespaces is not supported: it drops spaces of the text")
    if not file.normalizer_spec.escape_whitespaces:
        fail("escape_whitespaces false is not supported")
    if file.trainer_spec.treat_whitespace_as_suffix:
        fail("treat_whitespace_as_suffix is not supported")


def _merges(pieces: Iterable[Any], ids: Mapping[bytes, int], fail: Any) -> Merges:
    """Return the merges as ids: of all ways to make a piece, the one that happens, by its score."""
    scores_of = {piece.piece.decode(): piece.score for piece in pieces if piece.type == _NORMAL}
    characters = {text for text in scores_of if len(text) == 1}
    of_score: dict[float, list[str]] = {}
    for text, score in scores_of.items():
        for character in text:
            if character not in characters:
                fail(f"the piece {shorten(text)} holds {character!r}, which is no piece")
        if len(text) > 1:
            of_score.setdefault(score, []).append(text)
    scores = sorted(of_score, reverse=True)
    for score in scores:
        equal = of_score[score]
        others = (piece for other in scores if other != score for piece in of_score[other])
        if len(equal) > 1 and not (score == scores[-1] and _are_runs(equal, others)):
            fail(
                f"the pieces {shorten(equal[0])} and {shorten(equal[1])} have the same score, so "
                "that it depends on the text which comes first"
            )
    ranked = [*sorted(characters), *(piece for score in scores for piece in of_score[score])]
    table = TokenTable.of([piece.encode() for piece in ranked])
    try:
        merges = Merges.of(merges_of_ranks(table.data, table.offsets, "characters"))
    except ValueError as error:
        fail(str(error))
    return Merges(array("I", (ids[table.bytes_of(rank)] for rank in merges.flat)))


_LONGEST_RUN = 64


def _are_runs(pieces: Sequence[str], others: Iterable[str]) -> bool:
    """Return whether pieces of equal score merge as if their order were that of their scores.

    So it is with Mistral's, which are runs of spaces, after all others: they merge when nothing
    else does. Then only the length of a run matters. While lengths double, up to the longest, our
    order makes equal blocks from the left, and the rest alone depends on the length, which repeats
    after two blocks; leftmost first, a block is made after the other. So to compare the lengths
    of four blocks is to compare all.

    Args:
        pieces: of equal score, in the order of their ids.
        others: of other scores, all of them higher.
    """
    character, sizes = pieces[0][0], [len(piece) for piece in pieces]
    longest = max(sizes)
    doubled = [1 << power for power in range(1, longest.bit_length())]
    if (
        any(piece != character * len(piece) for piece in pieces)
        or longest > _LONGEST_RUN
        or [size for size in sizes if size in doubled] != doubled
        or doubled[-1] != longest
        or any(character * 2 in piece for piece in others)
    ):
        return False
    ranks = {size: rank for rank, size in enumerate(sizes)}
    equal = dict.fromkeys(sizes, 0)
    return all(
        _merged_run(size, ranks) == _merged_run(size, equal) for size in range(4 * longest + 1)
    )


def _merged_run(size: int, ranks: Mapping[int, int]) -> list[int]:
    """Return the lengths that single characters merge to: lowest rank first, then leftmost."""
    run = [1] * size
    while True:
        sums = enumerate(map(sum, pairwise(run)))
        known = [(ranks[size], i) for i, size in sums if size in ranks]
        if not known:
            return run
        _, i = min(known)
        run[i : i + 2] = [sum(run[i : i + 2])]


def _parsed(path: Path, data: bytes) -> Any:
    """Return the message of a file.

    Raises:
        TokenizerFileError: the file is no such message, or the package protobuf is missing.
    """
    message = _new_message(f"{path}: reading a .model file of SentencePiece")
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - bpe works without

    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise TokenizerFileError(f"{path}: is no .model file of SentencePiece: {error}") from None
    if not message.pieces:
        raise TokenizerFileError(f"{path}: is no .model file of SentencePiece: no pieces")
    return message


def _new_message(work: str) -> Any:
    """Return an empty message.

    Raises:
        TokenizerFileError: the package protobuf is missing, which this work needs.
    """
    try:
        return _message()()
    except ModuleNotFoundError:
        raise TokenizerFileError(f"{work} needs the package protobuf: install it") from None


@functools.cache
def _message() -> Any:
    """Return the class of the message, in a pool of its own.

    Other packages declare the same names.
    """
    from google.protobuf import (  # noqa: PLC0415 - bpe works without
        descriptor_pb2,
        descriptor_pool,
        message_factory,
        text_format,
    )

    pool = descriptor_pool.DescriptorPool()
    pool.Add(text_format.Parse(_SCHEMA, descriptor_pb2.FileDescriptorProto()))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("model.Model"))


_KIND, _ = KINDS["model"]
_MOST_PIECES = 1 << 24  # of different scores, which are floats of 32 bits


def write(parts: Parts, path: Path, leave_out: Collection[str], *_: str) -> TokenizerFiles:
    """Return a tokenizer as a .model file, with which ``sentencepiece`` gives the same ids.

    Raises:
        TokenizerError: the tokenizer is not one of SentencePiece, its merges are not those
            that the scores of pieces imply, or the package protobuf is missing.
    """
    model = parts.model
    if not isinstance(model, CharacterLevel) or model.end_of_word or not model.unknown:
        raise TokenizerError(
            f"{_KIND} holds BPE over characters with an unknown token and no end of word, and this "
            f"one is {type(model).__name__}: train with --model sentencepiece-bpe"
        )
    if not (model.fuse_unknown or model.byte_fallback) or parts.ignore_merges:
        raise TokenizerError(
            f"{_KIND} always fuses unknown characters, and never looks whole words up: this "
            "tokenizer does otherwise"
        )
    losses = check_losses(parts, "model", leave_out, known=_known_losses(parts))
    data = _serialized(parts, model, _ranked(parts, model))
    return TokenizerFiles({path: data}, losses)


def _known_losses(parts: Parts) -> dict[LossName, Loss | None]:
    """Return the losses of the pre-tokenizer, and of the roles that the file does not say."""
    cut = parts.pretokenizer
    steps = cut.normalizer
    if sorted(steps) not in (["mark-spaces"], ["mark-spaces", "prepend-mark"]):
        named = ", ".join(steps) or "none"
        raise TokenizerError(
            f"{_KIND} marks spaces (mark-spaces), alone or with prepend-mark, and this tokenizer "
            f"has the normalizer {named}"
        )
    whole = Pretokenizer("none", normalizer=steps)
    same = cut_at_marks(replace(parts, pretokenizer=whole)).pretokenizer
    losses: dict[LossName, Loss | None] = {"roles": None}
    if parts.roles.chat_template is not None:
        losses["roles"] = Loss("the chat template among the roles", reported=True)
    if replace(cut, never_split=()) not in (whole, same):
        losses["pretokenizer"] = Loss(f"a pre-tokenizer, and here it is {cut}")
    return losses


def _ranked(parts: Parts, model: CharacterLevel) -> list[int]:
    """Return the ids of the normal pieces, highest score first: those of merges, then the rest.

    Raises:
        TokenizerError: the order of the pieces implies other merges.
    """
    reserved = set(parts.special_tokens.values())
    bytes_of = BYTE_TOKENS if model.byte_fallback else ()
    reserved |= {parts.ids[token] for token in bytes_of}
    if parts.size <= parts.max_id:
        raise TokenizerError(f"{_KIND} cannot hold ids without a token")
    if parts.ids.get((model.unknown or "").encode()) not in reserved:
        raise TokenizerError(f"the unknown token {model.unknown!r} is no special token")
    tokens: list[bytes] = [token for token in parts.tokens if token is not None]
    made = dict.fromkeys(parts.merges.results)
    others = [id_ for id_ in range(len(tokens)) if id_ not in reserved and id_ not in made]
    ranked = [*made, *others]
    characters = {tokens[id_] for id_ in ranked if len(tokens[id_].decode()) == 1}
    for id_ in ranked:
        for character in tokens[id_].decode():
            if character.encode() not in characters:
                raise TokenizerError(
                    f"{_KIND} cannot hold the token {shorten(tokens[id_].decode())}: its character "
                    f"{character!r} is no token"
                )
    if len(ranked) > _MOST_PIECES:
        raise TokenizerError(f"{_KIND} cannot hold {len(ranked):,} pieces of different scores")
    in_order = [*sorted(characters), *(tokens[id_] for id_ in ranked if id_ in made)]
    in_order += [tokens[id_] for id_ in others if tokens[id_] not in characters]
    table = TokenTable.of(in_order)
    place = {token: number for number, token in enumerate(in_order)}
    listed = array("I", (place[tokens[id_]] for merge in parts.merges for id_ in merge))
    ours = Merges.of(merges_that_happen(table.data, table.offsets, listed, "characters"))
    check_implied(ours, table, kind=_KIND, model="characters")
    return ranked


def _serialized(parts: Parts, model: CharacterLevel, ranked: Sequence[int]) -> bytes:
    """Return the bytes of the file.

    Scores fall by one from piece to piece, as the package's own trainer has them.
    """
    scores = {id_: -float(rank) for rank, id_ in enumerate(ranked)}
    unknown = model.unknown or ""
    message = _new_message("writing a .model file of SentencePiece")
    for id_, token in enumerate(parts.tokens):
        content = (token or b"").decode()
        kind = _NORMAL if id_ in scores else _CONTROL
        if content == unknown:
            kind = _UNKNOWN
        elif kind == _CONTROL and content not in parts.special_tokens:
            kind = _BYTE
        message.pieces.add(piece=token, score=scores.get(id_, 0.0), type=kind)
    trainer = message.trainer_spec
    trainer.model_type, trainer.vocab_size = _BPE, parts.size
    trainer.byte_fallback = model.byte_fallback
    trainer.treat_whitespace_as_suffix = False
    trainer.unk_id, trainer.unk_piece = parts.special_tokens[unknown], unknown.encode()
    for role in ("bos", "eos", "pad"):
        content = getattr(parts.roles, role)
        id_ = parts.special_tokens.get(content, -1) if content is not None else -1
        setattr(trainer, f"{role}_id", id_)
        if id_ >= 0:
            setattr(trainer, f"{role}_piece", content.encode())
    normalizer = message.normalizer_spec
    normalizer.name, normalizer.precompiled_charsmap = b"identity", b""
    normalizer.add_dummy_prefix = "prepend-mark" in parts.pretokenizer.normalizer
    normalizer.remove_extra_whitespaces, normalizer.escape_whitespaces = False, True
    return bytes(message.SerializeToString(deterministic=True))


FORMAT = Format(
    files="*.model of SentencePiece",
    names=("*.model",),  # without ranks, which tiktoken's reads
    read=read,
    write=write,
)
