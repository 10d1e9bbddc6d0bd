"""Broken and hostile tokenizer files: an error that names file and entry, never a wrong id."""

from __future__ import annotations

import contextlib
import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

import bpe
from bpe.errors import BpeError, TokenizerFileError
from tests.bpe.fuzz_files import FORMATS, byte_level
from tests.bpe.huggingface import edited
from tests.bpe.vocabularies import BYTES, rank_lines

if TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, Any]
GOOD = byte_level(name="llama3").to_json()
WORD_PIECES = FORMATS["word pieces"]["tokenizer.json"].decode()
DIALECT = FORMATS["dialect"]["tokenizer.json"].decode()


def refused(path: Path, data: bytes, match: str, **settings: Any) -> None:
    path.write_bytes(data)
    with pytest.raises(TokenizerFileError, match=match) as caught:
        bpe.Tokenizer.load(path, **settings)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 600


SPLIT = {"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Isolated", "invert": False}
LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}


def cut_by(**changes: Any) -> Json:
    return {"type": "Sequence", "pretokenizers": [{**SPLIT, **changes}, LEVEL]}


NESTED = json.loads('{"type": "Sequence", "normalizers": [' * 200 + "]}" * 200)
SECOND = {"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "Metaspace"}]}
LARGE = [r"(?:\p{L}{9999}){9999}"]


OF_BYTES: list[tuple[str, object, str]] = [
    # Of another kind than expected.
    ("model.vocab", [1], "model.vocab: expected an object, found a list"),
    ("model.vocab.th", True, r"model.vocab.th: True is not an id"),
    ("model.merges", {}, "model.merges: expected a list, found an object"),
    ("model.merges.0", ["t"], r"merges\[0\]: is not a pair"),
    ("model.merges.0", "t h e", r"merges\[0\]: is not a pair"),
    ("model.merges.1", [["t"], "h"], r"merges\[1\]: is not a pair of two strings"),
    ("model.ignore_merges", 1, "model.ignore_merges: expected true or false, found 1"),
    ("model.byte_fallback", 1, "model.byte_fallback: expected true or false"),
    ("added_tokens", {}, "added_tokens: expected a list"),
    ("added_tokens.0.content", "\ud800", r"added_tokens\[0\].content: .* lone surrogate"),
    ("added_tokens.0.special", "no", r"added_tokens\[0\].special: expected true or false"),
    ("added_tokens.1.lstrip", 1, r"added_tokens\[1\].lstrip: expected true or false"),
    ("pre_tokenizer", "ByteLevel", "pre_tokenizer: expected an object"),
    ("pre_tokenizer", {"type": 3}, "pre_tokenizer.type: expected a string"),
    # Patterns that are small here and large once they are compiled.
    ("pre_tokenizer", cut_by(pattern={"Regex": "(?:a{9999}){9999}"}), "Regex: .*written out"),
    ("pre_tokenizer", cut_by(pattern={"Regex": "(?:" * 500 + "a" + ")" * 500}), "deep"),
    ("pre_tokenizer", cut_by(pattern={"Regex": "a" * 30_000}), "too long: more than 20,000"),
    ("pre_tokenizer", {"type": "Sequence", "pretokenizers": [SPLIT] * 5000}, "is too long"),
    # Ids that do not fit together.
    ("model.vocab.th", 10**9, "model.vocab.th: 1000000000 is not an id from 0 to"),
    ("model.vocab.th", 257, "'th' and 'the' have the same id 257"),
    ("added_tokens.0.id", 7, r"added_tokens\[0\].id: 7 is not the id that '<s>' has .* 259"),
    ("added_tokens.1.content", "<s>", r"added_tokens\[1\].content: '<s>' is .* added twice"),
    # Merges of what is not there.
    ("model.merges.0", ["t", "xyz"], r"merges\[0\]: 'xyz' is not in the vocabulary"),
    ("model.merges.1", ["e", "th"], r"merges\[1\]: 'eth', which it makes, is not"),
    ("model.vocab.▁the", 261, "'▁the': '▁' is not in the byte alphabet"),
    # Settings that would give other ids.
    ("truncation", {"max_length": 512}, "truncation: an object is not supported"),
    ("normalizer", {"type": "Strip"}, "normalizer.type: the normalizer 'Strip' is not"),
    ("normalizer", {"type": "NFC", "form": "C"}, "normalizer: 'form' is not supported"),
    ("normalizer", NESTED, "normalizer: nests too deeply"),
    ("normalizer", {"type": "Prepend", "prepend": "x"}, "Prepend is supported of ▁ alone"),
    ("model.dropout", 0.1, "model.dropout: 0.1 is not supported"),
    ("model.continuing_subword_prefix", "##", "continuing_subword_prefix: '##' is not"),
    ("model.end_of_word_suffix", "</w>", "end_of_word_suffix: '</w>' is not supported"),
    ("model.type", "WordPiece", "model: 'dropout' is not supported"),
    ("model.type", "Unigram", "the model 'Unigram' is not supported: only BPE and WordPiece"),
    ("model.shiny", 1, "model: 'shiny' is not supported"),
    ("added_tokens.0.shiny", True, r"added_tokens\[0\]: 'shiny' is not supported"),
    ("shiny", None, "the file: 'shiny' is not supported"),
    ("post_processor", {"type": "PrefixProcessing"}, "post_processor.type: 'PrefixProcess"),
    ("decoder", {"type": "Metaspace"}, "decoder.type: 'Metaspace' is not supported"),
    ("pre_tokenizer", None, "unk_token: .* the pre-tokenizer does not end in ByteLevel"),
    ("pre_tokenizer", {"type": "Whitespace"}, "the pre-tokenizer 'Whitespace' is not"),
    ("pre_tokenizer", SECOND, "Metaspace is supported as the first pre-tokenizer alone"),
    ("pre_tokenizer", {"type": "ByteLevel"}, "add_prefix_space: true is not supported"),
    ("pre_tokenizer.pretokenizers.1.shiny", True, r"pretokenizers\[1\]: 'shiny' is not"),
    ("pre_tokenizer.pretokenizers.0", {"type": "Digits", "by": 3}, "'by' is not supported"),
    ("pre_tokenizer", cut_by(behavior="Removed"), "behavior: 'Removed' is not supported"),
    (
        "pre_tokenizer",
        cut_by(behavior="MergedWithNext", pattern={"Regex": "a+"}),
        "MergedWithNext is supported if the pattern is a character or a class of them; it is",
    ),
    ("pre_tokenizer", cut_by(behavior="Contiguous", invert=True), "'Contiguous' is not supp"),
    ("pre_tokenizer", cut_by(invert=None), "invert: expected true or false"),
    ("pre_tokenizer", cut_by(pattern={"String": "a", "Regex": "a"}), "either Regex or String"),
    ("pre_tokenizer", cut_by(pattern={"Regex": "(a"}), r"pattern.Regex: .*\(a"),
    ("pre_tokenizer", cut_by(pattern={"Regex": "^a"}), r"pattern.Regex: '\^a' at character 0"),
    ("pre_tokenizer", cut_by(pattern={"Regex": "a?"}), r"pattern.Regex: .* match the empty"),
]


OF_PIECES: list[tuple[str, object, str]] = [
    ("model.max_input_chars_per_word", 0, "max_input_chars_per_word: 0 is not a number"),
    ("model.continuing_subword_prefix", None, "continuing_subword_prefix: expected a string"),
    ("model.unk_token", None, "unk_token: expected a string"),
    ("model.unk_token", "", "unk_token: is empty"),
    ("model.vocab", {"[UNK]": 0, "": 1}, "the token with the id 1 is empty"),
    ("model.vocab", {"[UNK]": 0, "\ud800": 1}, "lone surrogate"),
    ("pre_tokenizer", {**LEVEL, "use_regex": True}, "WordPiece over bytes is not supported"),
]


OF_THE_DIALECT: list[tuple[str, object, str]] = [
    ("normalizer", "nfc", "normalizer: expected a list"),
    ("pre_tokenizer.name", "gpt9", "unknown pre-tokenizer 'gpt9'"),
    ("pre_tokenizer.pattern", "a", "either a name or a pattern"),
    ("pre_tokenizer", {"pattern": LARGE}, "pre_tokenizer: .* repetitions written out"),
    ("pre_tokenizer.never_split", LARGE, "pre_tokenizer: .* repetitions written out"),
    ("pre_tokenizer.never_split", ["("], r"the pattern '\(' does not compile"),
    ("pre_tokenizer.never_split", [7], r"never_split\[0\]: expected a string, found 7"),
    ("pre_tokenizer.shiny", 1, "'shiny' is not supported"),
    ("decoder", {"type": "Fuse"}, "decoder: 'Fuse' is not supported"),
    ("model.type", "BPE", "model: unknown model 'BPE': use ByteLevel, Char"),
    ("model.end_of_word", 1, "model: end_of_word must be a string, got 1"),
    ("model.byte_fallback", 1, "model: byte_fallback must be true or false, got 1"),
    ("model.vocab.x", 0, r"'\[UNK\]' is added under the id 0 of another token"),
    ("added_tokens.0.id", True, r"added_tokens\[0\].id: True is not an id"),
    ("version", "beam-bpe-2", "version: 'beam-bpe-2' is not supported"),
]


@pytest.mark.parametrize(
    ("good", "place", "value", "named"),
    [
        *((GOOD, *row) for row in OF_BYTES),
        *((WORD_PIECES, *row) for row in OF_PIECES),
        *((DIALECT, *row) for row in OF_THE_DIALECT),
    ],
    ids=lambda value: "" if str(value).startswith("{") else None,
)
def test_what_cannot_be_honoured_is_refused_by_name(
    good: str, place: str, value: Any, named: str, tmp_path: Path
) -> None:
    refused(tmp_path / "tokenizer.json", edited(good, place, value).encode(), named)


def ranks(*changes: tuple[int, bytes]) -> bytes:
    lines = rank_lines(BYTES).split(b"\n")
    for number, line in changes:
        lines[number] = line
    return b"\n".join(lines)


@pytest.mark.parametrize(
    ("name", "data", "named"),
    [
        ("x.json", b"[]", "the file: expected an object, found a list"),
        ("x.json", b"\xff\xfe{}", "is not JSON in UTF-8"),
        ("x.json", b'{"version": NaN}', "NaN is not JSON"),
        ("x.json", b'{"model":' * 200_000, "nests too deeply|is not JSON"),
        ("x.json", b'{"version": ' + b"9" * 5000 + b"}", "is not JSON|not supported"),
        ("x.json", b'{"model": {"vocab": {"a": 0, "a": 1}}}', "duplicate key 'a'"),
        ("x.tiktoken", ranks((5, b"")), "no token is the single byte 5"),
        ("x.tiktoken", ranks((5, b"BQ==")), "line 6: b'BQ==' is not a token in base64 and its"),
        ("x.tiktoken", ranks((5, b"B*== 5")), r"line 6: b'B\*== 5' is not a token in base64"),
        ("x.tiktoken", ranks((5, b"BQ== -5")), "line 6: b'-5' is not a rank"),
        ("x.tiktoken", ranks((5, b"BQ== 100000000")), "line 6: b'100000000' is not a rank from"),
        ("x.tiktoken", ranks((5, b"BQ== " + b"9" * 10_000)), "line 6: b'999.* is not a rank from"),
        ("x.tiktoken", ranks((5, b"BQ== 6")), r"b'\\x05' and b'\\x06' have the same rank 6"),
        ("x.tiktoken", ranks((5, b"Bg== 5")), r"line 7: the token b'\\x06' is empty or a dup"),
        ("x.tiktoken", ranks(), "`pretokenizer` cl100k"),  # how text is cut is not in the file
        ("x.bin", b"", "not known as a tokenizer file by its name"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_files_that_are_none(name: str, data: bytes, named: str, tmp_path: Path) -> None:
    refused(tmp_path / name, data, named)


# .tiktoken


def test_ranks_with_gaps(tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    path.write_bytes(ranks((0, b"AA== 1000")) + b"YWI= 2000\n\n\n")
    tokenizer = bpe.Tokenizer.load(path, pretokenizer="gpt2", special_tokens={"<s>": 300})
    assert tokenizer.encode("\0ab<s>", allowed_special="all") == [1000, 2000, 300]
    assert (len(tokenizer), tokenizer.max_id) == (258, 2000)


def test_special_tokens_that_do_not_fit(tmp_path: Path) -> None:
    for id_, named in ((5, r"id 5: the file gives it to b'\\x05'"), (10**9, "id 1000000000")):
        more = {"pretokenizer": "gpt2", "special_tokens": {"<s>": id_}}
        refused(tmp_path / "x.tiktoken", ranks(), f"'<s>' cannot have the {named}", **more)


def test_ranks_with_every_prefix_of_a_long_token(tmp_path: Path) -> None:
    # A million splits; comparing strings at each would take minutes.
    tokens = (*BYTES, *(b"a" * length for length in range(2, 1500)), b"b" * 300_000)
    path = tmp_path / "x.tiktoken"
    path.write_bytes(rank_lines(tokens))
    tokenizer = bpe.Tokenizer.load(path, pretokenizer="none")
    assert tokenizer.encode("a" * 1499) == [len(tokens) - 2]
    assert tokenizer.encode("b" * 300_000) == [len(tokens) - 1]


def test_ranks_that_need_much_more_memory_than_their_file(tmp_path: Path) -> None:
    longer = [b"a" * length for length in range(2, 6000)]
    path = tmp_path / "x.tiktoken"
    path.write_bytes(rank_lines([*BYTES, *longer]))
    tokenizer = bpe.Tokenizer.load(path, pretokenizer="none")  # each is made of two before it
    assert len(tokenizer.merges) == len(longer)
    longest_first = rank_lines([*BYTES, *reversed(longer)])
    refused(path, longest_first, "in too many ways", pretokenizer="none")


# vocab.json and merges.txt


def gpt2_files(folder: Path, more: dict[str, int], *, merges: str | None = None) -> Path:
    """The pair of files, with more in the vocabulary, or with other merges."""
    vocab = json.loads(FORMATS["pair"]["vocab.json"]) | more
    (folder / "merges.txt").write_text(merges or FORMATS["pair"]["merges.txt"].decode())
    (folder / "vocab.json").write_text(json.dumps(vocab))
    return folder / "vocab.json"


def test_the_pair_with_settings_and_other_ends_of_lines(tmp_path: Path) -> None:
    path = gpt2_files(tmp_path, {}, merges="#version: 0.2\r\nt h\r\nth e\r\nĠ th\r\n")
    assert bpe.Tokenizer.load(path).encode("the<s>", allowed_special="all") == [257, 259]
    cut = bpe.Tokenizer.load(path, pattern="[a-z]|[^a-z]", special_tokens={"<s>": 259, "<t>": 300})
    assert cut.encode("the<t>", allowed_special=["<t>"]) == [116, 104, 101, 300]


@pytest.mark.parametrize(
    ("vocab", "merges", "named"),
    [
        ({}, "t h\nth", r"merges.txt: merges\[1\]: is not a pair"),
        ({"the": 256}, "t h", "vocab.json: the file: 'th' and 'the' have the same id 256"),
    ],
)
def test_a_broken_pair(vocab: dict[str, int], merges: str, named: str, tmp_path: Path) -> None:
    path = gpt2_files(tmp_path, vocab, merges=merges)
    with pytest.raises(TokenizerFileError, match=named):
        bpe.Tokenizer.load(path)


def test_a_token_of_the_pair_that_may_be_special_or_not(tmp_path: Path) -> None:
    path = gpt2_files(tmp_path, {"<é>": 300})
    with pytest.raises(TokenizerFileError, match=r"<é>: is made by no merge.*name the special"):
        bpe.Tokenizer.load(path)
    special = bpe.Tokenizer.load(path, special_tokens={"<é>": 300})
    assert special.encode("<é>", allowed_special="all") == [300]
    # Not even with the same bytes: the file spells it otherwise.
    with pytest.raises(TokenizerFileError, match=r"' ' is added under the id 32 of another token"):
        bpe.Tokenizer.load(path, special_tokens={" ": 32})


# Any of them.


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TokenizerFileError, match=r"holds neither tokenizer\.json, "):
        bpe.Tokenizer.load(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"absent\.json"):
        bpe.Tokenizer.load(tmp_path / "absent.json")
    path = gpt2_files(tmp_path, {})
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"merges\.txt"):
        bpe.Tokenizer.load(path)


def test_a_tokenizer_json_defines_its_own_pretokenizer(tmp_path: Path) -> None:
    named = "defines its own pre-tokenizer"
    refused(tmp_path / "tokenizer.json", GOOD.encode(), named, pretokenizer="gpt2")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("tokenizer.json", edited(GOOD, "model.vocab.th", 900_000).encode()),
        ("x.tiktoken", ranks((5, b"BQ== 900000"))),
    ],
    ids=["gap", "ranks"],
)
def test_memory_is_bounded_by_the_file(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    tracemalloc.start()
    try:
        with contextlib.suppress(BpeError):
            bpe.Tokenizer.load(tmp_path / name)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 128 << 20
