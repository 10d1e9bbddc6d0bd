"""``*.model`` of SentencePiece, of type BPE, as Llama 2 and Mistral were published. Read only.

The file is a protocol buffer (``sentencepiece_model.proto`` of that project). Two neighbours merge
if their characters together are a piece, the one of highest score first, the leftmost of equals.
"""

from __future__ import annotations

import functools
from array import array
from itertools import accumulate
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from bpe._native import merges_of_ranks
from bpe.errors import TokenizerError, TokenizerFileError
from bpe.formats.cut_at_marks import cut_at_marks
from bpe.formats.format import Format, TokenizerSpec
from bpe.formats.strict_json import read_bytes, shorten
from bpe.models import BYTE_TOKENS, CharacterLevel
from bpe.pretokenizer import Pretokenizer
from bpe.roles import Roles

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from bpe.formats.format import SpecialIds, TokenizerFiles
    from bpe.tokenizer import Tokenizer

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)
_KINDS = {_USER_DEFINED: "user-defined", _UNUSED: "unused"}  # not supported
_TYPES = {1: "Unigram", 3: "Word", 4: "Char"}
_BPE = 2

# The fields that are read, by message: name, number, type of google.protobuf, default. Strings are
# read as bytes: in a broken file they may not be UTF-8.
_FIELDS: Mapping[str, Sequence[tuple[str, int, str, str | None]]] = {
    "Piece": [
        ("piece", 1, "BYTES", None),
        ("score", 2, "FLOAT", None),
        ("type", 3, "INT32", str(_NORMAL)),
    ],
    "Trainer": [
        ("model_type", 3, "INT32", "1"),
        ("treat_whitespace_as_suffix", 24, "BOOL", "false"),
        ("byte_fallback", 35, "BOOL", "false"),
        ("bos_piece", 46, "BYTES", "<s>"),
        ("eos_piece", 47, "BYTES", "</s>"),
        ("pad_piece", 48, "BYTES", "<pad>"),
    ],
    "Normalizer": [
        ("name", 1, "BYTES", None),
        ("precompiled_charsmap", 2, "BYTES", None),
        ("add_dummy_prefix", 3, "BOOL", "true"),
        ("remove_extra_whitespaces", 4, "BOOL", "true"),
        ("escape_whitespaces", 5, "BOOL", "true"),
    ],
    "Model": [
        ("pieces", 1, "Piece", None),
        ("trainer_spec", 2, "Trainer", None),
        ("normalizer_spec", 3, "Normalizer", None),
        ("denormalizer_spec", 5, "Normalizer", None),
    ],
}


def read(
    path: Path,
    pretokenizer: Pretokenizer | None = None,  # noqa: ARG001 - the file defines it
    special_tokens: SpecialIds = None,  # noqa: ARG001 - the file defines them
) -> TokenizerSpec:
    """Read a .model file of SentencePiece.

    Raises:
        TokenizerFileError: the file is broken, or of a tokenizer that this library cannot honour
            exactly; the message names what it is.
    """

    def fail(what: str) -> NoReturn:
        raise TokenizerFileError(f"{path}: {what}")

    file = _parsed(path, read_bytes(path))
    _check_settings(file, fail)
    pieces = [_checked(piece, fail) for piece in file.pieces]
    tokens = [piece.text.encode() for piece in pieces]
    ids = {token: id_ for id_, token in enumerate(tokens)}
    if len(ids) != len(tokens) or b"" in ids:
        fail("a piece is empty or a duplicate")
    of_kind = {
        kind: [piece.text for piece in pieces if piece.kind == kind]
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
    merges = _merges([piece for piece in pieces if piece.kind == _NORMAL], ids, fail)
    prepended = ("prepend-mark",) if file.normalizer_spec.add_dummy_prefix else ()
    cut = Pretokenizer("none", normalizer=(*prepended, "mark-spaces"))
    special = {content: ids[content.encode()] for content in (unknown, *of_kind[_CONTROL])}
    trainer = file.trainer_spec
    named = {"bos": trainer.bos_piece, "eos": trainer.eos_piece, "pad": trainer.pad_piece}
    roles = {
        role: token.decode()
        for role, token in named.items()
        if token in map(str.encode, of_kind[_CONTROL])
    }
    return TokenizerSpec(
        tokens=tokens,
        merges=merges,
        pretokenizer=cut_at_marks(cut, model=model, tokens=tokens, merges=merges),
        special_tokens=special,
        model=model,
        roles=Roles(unk=unknown, **roles),
    )


class _Piece(NamedTuple):
    text: str
    score: float
    kind: int


def _checked(piece: Any, fail: Any) -> _Piece:
    try:
        text = piece.piece.decode()
    except UnicodeDecodeError:
        fail(f"the piece {shorten(piece.piece)} is not UTF-8")
    if piece.type not in (_NORMAL, _UNKNOWN, _CONTROL, _BYTE):
        kind = _KINDS.get(piece.type, piece.type)
        fail(f"the piece {shorten(text)} of type {kind} is not supported")
    if not isfinite(piece.score):
        fail(f"the piece {shorten(text)} has the score {piece.score}")
    return _Piece(text, piece.score, piece.type)


def _check_settings(file: Any, fail: Any) -> None:
    """Refuse settings of another tokenizer than ours."""
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


def _merges(normal: Sequence[_Piece], ids: Mapping[bytes, int], fail: Any) -> array[int]:
    """The merges as ids: of all ways to make a piece, the one that happens, by its score."""
    characters = {piece.text for piece in normal if len(piece.text) == 1}
    of_score: dict[float, list[str]] = {}
    for piece in normal:
        for character in piece.text:
            if character not in characters:
                fail(f"the piece {shorten(piece.text)} holds {character!r}, which is no piece")
        if len(piece.text) > 1:
            of_score.setdefault(piece.score, []).append(piece.text)
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
    tokens = [piece.encode() for piece in ranked]
    offsets = array("q", accumulate(map(len, tokens), initial=0))
    try:
        merges = merges_of_ranks(b"".join(tokens), offsets, "characters")
    except ValueError as error:
        fail(str(error))
    return array("I", (ids[tokens[rank]] for rank in memoryview(merges).cast("B").cast("I")))


_LONGEST_RUN = 64


def _are_runs(pieces: Sequence[str], others: Iterable[str]) -> bool:
    """Whether pieces of equal score merge as if their order were that of their scores.

    So it is with Mistral's, which are runs of spaces, behind all others: they merge when nothing
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
    """The lengths that single characters merge to: the lowest rank first, then the leftmost."""
    run = [1] * size
    while True:
        sums = ((run[i] + run[i + 1], i) for i in range(len(run) - 1))
        _, i = min(((ranks[size], i) for size, i in sums if size in ranks), default=(0, -1))
        if i < 0:
            return run
        run[i : i + 2] = [run[i] + run[i + 1]]


def _parsed(path: Path, data: bytes) -> Any:
    """The message of a file.

    Raises:
        TokenizerFileError: it is none, or the package protobuf is missing.
    """
    try:
        from google.protobuf.message import DecodeError  # noqa: PLC0415 - bpe works without
    except ModuleNotFoundError:
        raise TokenizerFileError(
            f"{path}: reading a .model file of SentencePiece needs the package protobuf: install it"
        ) from None
    message = _message()()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise TokenizerFileError(f"{path}: is no .model file of SentencePiece: {error}") from None
    if not message.pieces:
        raise TokenizerFileError(f"{path}: is no .model file of SentencePiece: no pieces")
    return message


@functools.cache
def _message() -> Any:
    """The class of the message, in a pool of its own: other packages declare the same names."""
    from google.protobuf import (  # noqa: PLC0415 - bpe works without
        descriptor_pb2,
        descriptor_pool,
        message_factory,
    )

    declared = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="model.proto", package="model", syntax="proto2")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, kind, default in fields:
            is_message = kind in _FIELDS
            message.field.add(
                name=field,
                number=number,
                label=declared.LABEL_REPEATED if field == "pieces" else declared.LABEL_OPTIONAL,
                type=getattr(declared, f"TYPE_{'MESSAGE' if is_message else kind}"),
                type_name=f".model.{kind}" if is_message else None,
                default_value=default,
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("model.Model"))


def write(
    tokenizer: Tokenizer,  # noqa: ARG001 - whatever it is
    path: Path,
    leave_out: Collection[str] = (),  # noqa: ARG001 - nothing is written
    dialect: str = "",  # noqa: ARG001 - of tokenizer.json
) -> TokenizerFiles:
    """Refuse: the format is read only.

    Raises:
        TokenizerError: always.
    """
    raise TokenizerError(
        f"{path}: .model files of SentencePiece are read, not written: write a tokenizer.json"
    )


FORMAT = Format(
    files="*.model of SentencePiece",
    endings=(".model",),
    usual_names=(),  # tokenizer.model, which that of tiktoken names
    self_contained=True,
    reads=lambda path: path.suffix == ".model",  # and no ranks, which tiktoken's would read
    writes=lambda path: path.suffix == ".model",
    read=read,
    write=write,
)
