"""Broken and hostile tokenizer files: an error that names file and entry, never a wrong id."""

from __future__ import annotations

import base64
import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
import tokenizers

import bpe
from bpe.errors import BpeError, TokenizerFileError
from tests.bpe.huggingface import ABSENT, edited
from tests.bpe.vocabularies import BYTES, small_tokenizer, write_ranks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Json = dict[str, Any]


GOOD = bpe.Tokenizer(
    tokens=[*BYTES, b"th", b"the", b"<s>", b"<tool>"],
    merges=[(116, 104, 256), (256, 101, 257)],
    pretokenizer=bpe.Pretokenizer("llama3"),
    special_tokens={"<s>": 258},
    added_tokens={"<tool>": 259},
).to_json()


def good() -> Json:
    """A tokenizer.json with two merges and two added tokens."""
    file: Json = json.loads(GOOD)
    return file


def refused(path: Path, data: bytes, match: str) -> None:
    path.write_bytes(data)
    with pytest.raises(TokenizerFileError, match=match) as caught:
        bpe.Tokenizer.load(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 600


THE = {**good()["added_tokens"][0], "id": 257, "content": "the"}


def test_the_good_file_loads(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(GOOD)
    assert bpe.Tokenizer.load(path).encode("the") == [257]


SPLIT = {"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Isolated", "invert": False}
LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}


def nested(inner: Json, key: str, depth: int) -> Json:
    for _ in range(depth):
        inner = {"type": "Sequence", key: [inner]}
    return inner


def cut_by(**changes: Any) -> Json:
    return {"type": "Sequence", "pretokenizers": [{**SPLIT, **changes}, LEVEL]}


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        # Of another kind than expected.
        ("model", None, "model: expected an object, found nothing"),
        ("model", [], "model: expected an object, found a list"),
        ("model.vocab", [1], "model.vocab: expected an object, found a list"),
        ("model.vocab.th", "256", r"model.vocab.th: '256' is not an id"),
        ("model.vocab.th", 256.0, r"model.vocab.th: 256.0 is not an id"),
        ("model.vocab.th", True, r"model.vocab.th: True is not an id"),
        ("model.vocab.th", None, r"model.vocab.th: None is not an id"),
        ("model.merges", {}, "model.merges: expected a list, found an object"),
        ("model.merges.0", 7, r"merges\[0\]: is not a pair"),
        ("model.merges.0", ["t"], r"merges\[0\]: is not a pair"),
        ("model.merges.0", "t h e", r"merges\[0\]: is not a pair"),
        ("model.merges.1", [["t"], "h"], r"merges\[1\]: a list is not in the vocabulary"),
        ("model.ignore_merges", 1, "model.ignore_merges: expected true or false, found 1"),
        ("added_tokens", {}, "added_tokens: expected a list"),
        ("added_tokens.0", "<s>", r"added_tokens\[0\]: expected an object, found the string '<s>'"),
        ("added_tokens.0.content", 5, r"added_tokens\[0\].content: expected a string, found 5"),
        ("added_tokens.0.content", "", r"added_tokens\[0\].content: '' is empty"),
        ("added_tokens.0.content", "\ud800", r"added_tokens\[0\].content: .* lone surrogate"),
        ("added_tokens.0.special", "no", r"added_tokens\[0\].special: expected true or false"),
        ("pre_tokenizer", "ByteLevel", "pre_tokenizer: expected an object"),
        ("pre_tokenizer", {"type": 3}, "pre_tokenizer.type: expected a string"),
        ("pre_tokenizer", {"type": "Sequence"}, "pretokenizers: expected a list, found nothing"),
        # Patterns that are small here and large once they are compiled.
        ("pre_tokenizer", cut_by(pattern={"Regex": "(?:a{9999}){9999}"}), "Regex: .*written out"),
        ("pre_tokenizer", cut_by(pattern={"Regex": "(?:[a]{99}){,99}"}), "Regex: .*written out"),
        ("pre_tokenizer", cut_by(pattern={"Regex": "(?:" * 500 + "a" + ")" * 500}), "deep"),
        ("pre_tokenizer", cut_by(pattern={"Regex": "a" * 30_000}), "too long: more than 20,000"),
        ("pre_tokenizer", {"type": "Sequence", "pretokenizers": [SPLIT] * 5000}, "is too long"),
        # Ids that do not fit together.
        ("model.vocab.th", -1, "model.vocab.th: -1 is not an id"),
        ("model.vocab.th", 10**9, "model.vocab.th: 1000000000 is not an id from 0 to"),
        ("model.vocab.th", 2**70, "model.vocab.th: 11805.* is not an id from 0 to"),
        ("model.vocab.th", 257, "'th' and 'the' have the same id 257"),
        ("added_tokens.0.id", 7, r"added_tokens\[0\].id: 7 is not the id that '<s>' has .* 258"),
        ("added_tokens.0.id", None, r"added_tokens\[0\].id: None is not the id"),
        ("added_tokens.1.content", "<s>", r"added_tokens\[1\].content: '<s>' is .* added twice"),
        # Merges of what is not there.
        ("model.merges.0", ["t", "xyz"], r"merges\[0\]: 'xyz' is not in the vocabulary"),
        ("model.merges.1", ["e", "th"], r"merges\[1\]: 'eth', which it makes, is not"),
        ("model.merges.1", ["t", "h"], r"merge 1 .*: the pair is merged twice"),
        ("model.vocab.▁the", 260, "'▁the': '▁' is not in the byte alphabet"),
        ("model.vocab", {"<s>": 258}, r"merges\[0\]: 't' is not in the vocabulary"),
        # Settings that would give other ids.
        ("version", "2.0", "version: '2.0' is not supported"),
        ("truncation", {"max_length": 512}, "truncation: an object is not supported"),
        ("padding", {"length": 8}, "padding: an object is not supported"),
        ("normalizer", {"type": "Strip"}, "normalizer.type: the normalizer 'Strip' is not"),
        ("normalizer", {"type": "NFC", "form": "C"}, "normalizer: 'form' is not supported"),
        ("normalizer", "NFC", "normalizer: expected an object, found the string 'NFC'"),
        ("normalizer", {"type": "Sequence"}, "normalizers: expected a list, found nothing"),
        ("normalizer", nested({"type": "NFC"}, "normalizers", 200), "normalizer: nests too deeply"),
        ("pre_tokenizer", nested(LEVEL, "pretokenizers", 200), "pre_tokenizer: nests too deeply"),
        ("post_processor", nested(LEVEL, "processors", 200), "post_processor: nests too deeply"),
        ("normalizer", {"type": "Prepend", "prepend": "x"}, "Prepend is supported of ▁ alone"),
        ("model.byte_fallback", 1, "model.byte_fallback: expected true or false"),
        ("model.dropout", 0.1, "model.dropout: 0.1 is not supported"),
        ("model.continuing_subword_prefix", "##", "continuing_subword_prefix: '##' is not"),
        ("model.end_of_word_suffix", "</w>", "end_of_word_suffix: '</w>' is not supported"),
        ("model.type", "WordPiece", "model: 'dropout' is not supported"),
        ("model.type", "Unigram", "the model 'Unigram' is not supported: only BPE and WordPiece"),
        ("model.shiny", 1, "model: 'shiny' is not supported"),
        ("shiny", None, "the file: 'shiny' is not supported"),
        ("added_tokens.1.lstrip", 1, r"added_tokens\[1\].lstrip: expected true or false"),
        ("added_tokens.1.rstrip", "no", r"added_tokens\[1\].rstrip: expected true or false"),
        ("added_tokens.1.single_word", [], r"added_tokens\[1\].single_word: expected true or"),
        ("added_tokens.0.shiny", True, r"added_tokens\[0\]: 'shiny' is not supported"),
        ("post_processor", {"type": "PrefixProcessing"}, "post_processor.type: 'PrefixProcess"),
        ("decoder", {"type": "Metaspace"}, "decoder.type: 'Metaspace' is not supported"),
        ("pre_tokenizer", None, "unk_token: .* the pre-tokenizer does not end in ByteLevel"),
        ("pre_tokenizer", {"type": "Whitespace"}, "the pre-tokenizer 'Whitespace' is not"),
        (
            "pre_tokenizer",
            {"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "Metaspace"}]},
            "Metaspace is supported as the first pre-tokenizer alone",
        ),
        ("pre_tokenizer", {"type": "ByteLevel"}, "add_prefix_space: true is not supported"),
        ("pre_tokenizer.pretokenizers.1.add_prefix_space", True, "add_prefix_space: true is not"),
        ("pre_tokenizer.pretokenizers.1.shiny", True, r"pretokenizers\[1\]: 'shiny' is not"),
        ("pre_tokenizer.pretokenizers.0", {"type": "Digits", "by": 3}, "'by' is not supported"),
        ("pre_tokenizer.pretokenizers.0", LEVEL, "the pre-tokenizer 'ByteLevel' is not"),
        ("pre_tokenizer.pretokenizers.0", {"type": "CharDelimiterSplit"}, "is not supported"),
        ("pre_tokenizer.pretokenizers.0", {"type": "Punctuation", "behavior": "Removed"}, "Remov"),
        ("pre_tokenizer", cut_by(behavior="Removed"), "behavior: 'Removed' is not supported"),
        (
            "pre_tokenizer",
            cut_by(behavior="MergedWithNext", pattern={"Regex": "a+"}),
            "MergedWithNext is supported if the pattern is a character or a class of them; it is",
        ),
        ("pre_tokenizer", cut_by(behavior="MergedWithAll"), "behavior: 'MergedWithAll' is not"),
        ("pre_tokenizer", cut_by(behavior="Contiguous", invert=True), "'Contiguous' is not supp"),
        ("pre_tokenizer", cut_by(invert=None), "invert: expected true or false"),
        ("pre_tokenizer", cut_by(pattern={"String": ""}), "pattern.String: .* match the empty"),
        ("pre_tokenizer", cut_by(pattern={"String": "a", "Regex": "a"}), "either Regex or String"),
        ("pre_tokenizer", cut_by(pattern={}), "expected either Regex or String"),
        ("pre_tokenizer", cut_by(pattern={"Regex": "(a"}), r"pattern.Regex: .*\(a"),
        ("pre_tokenizer", cut_by(pattern={"Regex": r"\w+"}), r"pattern.Regex: .* at character 0"),
        ("pre_tokenizer", cut_by(pattern={"Regex": "^a"}), r"pattern.Regex: '\^a' at character 0"),
        ("pre_tokenizer", cut_by(pattern={"Regex": "a?"}), r"pattern.Regex: .* match the empty"),
        ("model", ABSENT, "model: expected an object"),
        ("pre_tokenizer", ABSENT, "does not end in ByteLevel"),
        ("model.vocab", ABSENT, "model.vocab: expected .* nothing"),
        ("model.merges", ABSENT, "model.merges: expected .* nothing"),
        ("model.vocab.Q", ABSENT, "no token is the single byte 81"),
        ("added_tokens.1", THE, r"merge 1 .*257 is a special token"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(
    place: str, value: Any, named: str, tmp_path: Path
) -> None:
    refused(tmp_path / "tokenizer.json", edited(GOOD, place, value).encode(), named)


def test_added_tokens_that_overlap_but_are_looked_for_apart(tmp_path: Path) -> None:
    file = good()
    file["added_tokens"][1]["normalized"] = True
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(file))
    assert bpe.Tokenizer.load(path).encode("<tool>") == [259]
    file["added_tokens"].append({**file["added_tokens"][0], "id": 260, "content": "ol><s>"})
    path.write_text(json.dumps(file))
    text = "<tool><s>"
    expected = tokenizers.Tokenizer.from_file(str(path)).encode(text).ids
    assert bpe.Tokenizer.load(path).encode(text, allowed_special="all") == expected
    assert expected[-1] == 260


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"", "is not JSON"),
        (b"null", "the file: expected an object, found nothing"),
        (b"[]", "the file: expected an object, found a list"),
        (b"\xff\xfe{}", "is not JSON in UTF-8"),
        (b"\xef\xbb\xbf{}", "is not JSON"),
        (b'{"version": NaN}', "NaN is not JSON"),
        (b'{"version": -Infinity}', "-Infinity is not JSON"),
        (b"[" * 1_000_000, "nests too deeply|is not JSON"),
        (b'{"model":' * 200_000, "nests too deeply|is not JSON"),
        (b'{"version": ' + b"9" * 5000 + b"}", "is not JSON|not supported"),
        (b'{"model": {"vocab": {"a": 0, "a": 1}}}', "duplicate key 'a'"),
    ],
)
def test_what_is_no_json(data: bytes, named: str, tmp_path: Path) -> None:
    refused(tmp_path / "tokenizer.json", data, named)


# .tiktoken


def ranks(*changes: tuple[int, bytes], more: bytes = b"") -> bytes:
    lines = [base64.b64encode(token) + b" %d" % rank for rank, token in enumerate(BYTES)]
    for number, line in changes:
        lines[number] = line
    return b"\n".join(lines) + b"\n" + more


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"", "no token is the single byte 0"),
        (ranks((5, b"")), "no token is the single byte 5"),
        (ranks((5, b"BQ==")), "line 6: b'BQ==' is not a token in base64 and its rank"),
        (ranks((5, b"BQ== 5 5")), "line 6: .* is not a token in base64"),
        (ranks((5, b"B*== 5")), r"line 6: b'B\*== 5' is not a token in base64"),
        (ranks((5, b"BQ= 5")), "line 6: .* is not a token in base64"),
        (ranks((5, b"BQ== x")), "line 6: b'x' is not a rank"),
        (ranks((5, b"BQ== -5")), "line 6: b'-5' is not a rank"),
        (ranks((5, b"BQ== 5.0")), "line 6: b'5.0' is not a rank"),
        (ranks((5, b"BQ== NaN")), "line 6: b'NaN' is not a rank"),
        (ranks((5, b"BQ== 1000000000")), "line 6: b'1000000000' is not a rank from 0 to"),
        (ranks((5, b"BQ== " + b"9" * 10_000)), "line 6: b'999.* is not a rank from 0 to"),
        (ranks((5, b"BQ== 6")), r"b'\\x05' and b'\\x06' have the same rank 6"),
        (ranks((5, b"Bg== 5")), r"line 7: the token b'\\x06' is empty or a duplicate"),
        (ranks(more=b" 256\n"), "line 257"),
        (ranks(more=b"\xff\xff 256\n"), "line 257"),
        (b"\x00" * 1000, "line 1"),
        (b"<html>not here</html>", "line 1: .* is not a token"),
    ],
)
def test_broken_ranks(data: bytes, named: str, tmp_path: Path) -> None:
    refused(tmp_path / "x.tiktoken", data, named)


def test_ranks_with_gaps(tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    path.write_bytes(ranks((0, b"AA== 1000"), more=b"YWI= 2000\n\n\n"))
    tokenizer = bpe.Tokenizer.load(path, pretokenizer="gpt2", special_tokens={"<s>": 300})
    assert tokenizer.encode("\0ab<s>", allowed_special="all") == [1000, 2000, 300]
    assert (len(tokenizer), tokenizer.max_id) == (258, 2000)


def test_ranks_do_not_say_how_text_is_cut(tmp_path: Path) -> None:
    refused(tmp_path / "x.tiktoken", ranks(), "`pretokenizer` cl100k")


@pytest.mark.parametrize(
    ("special", "named"),
    [
        ({"<s>": 5}, r"'<s>' cannot have the id 5: the file gives it to b'\\x05'"),
        ({"<s>": 10**9}, "'<s>' cannot have the id 1000000000"),
        ({"<s>": -1}, "'<s>' cannot have the id -1"),
        ({"a": 256}, "ids 97 and 256 are the same byte string"),
        ({"\ud800": 256}, "lone surrogate"),
        ({"": 256}, "is empty"),
    ],
)
def test_special_tokens_that_do_not_fit(
    special: dict[str, int], named: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.tiktoken"
    path.write_bytes(ranks())
    with pytest.raises(TokenizerFileError, match=named):
        bpe.Tokenizer.load(path, pretokenizer="gpt2", special_tokens=special)


def test_ranks_with_every_prefix_of_a_long_token(tmp_path: Path) -> None:
    # A million splits; comparing strings at each would take minutes.
    tokens = (*BYTES, *(b"a" * length for length in range(2, 1500)), b"b" * 300_000)
    path = write_ranks(tmp_path / "x.tiktoken", tokens)
    tokenizer = bpe.Tokenizer.load(path, pretokenizer="none")
    assert tokenizer.encode("a" * 1499) == [len(tokens) - 2]
    assert tokenizer.encode("b" * 300_000) == [len(tokens) - 1]


def test_ranks_that_need_much_more_memory_than_their_file(tmp_path: Path) -> None:
    lengths = range(2, 6000)
    path = write_ranks(tmp_path / "x.tiktoken", (*BYTES, *(b"a" * length for length in lengths)))
    tokenizer = bpe.Tokenizer.load(path, pretokenizer="none")  # each is made of two before it
    assert len(tokenizer.merges) == len(lengths)
    longest_first = (*BYTES, *(b"a" * length for length in reversed(lengths)))
    path = write_ranks(tmp_path / "x.tiktoken", longest_first)
    with pytest.raises(TokenizerFileError, match="in too many ways"):
        bpe.Tokenizer.load(path, pretokenizer="none")


# vocab.json and merges.txt


def gpt2_files(folder: Path, vocab: Json, merges: str) -> Path:
    (folder / "merges.txt").write_text(merges)
    (folder / "vocab.json").write_text(json.dumps(vocab))
    return folder / "vocab.json"


def gpt2_vocab() -> Json:
    vocab: Json = good()["model"]["vocab"]
    del vocab["<tool>"]
    return vocab


def test_the_pair_of_files(tmp_path: Path) -> None:
    path = gpt2_files(tmp_path, gpt2_vocab(), "#version: 0.2\r\nt h\r\nth e\r\n")
    for name in (path, tmp_path, tmp_path / "merges.txt"):
        tokenizer = bpe.Tokenizer.load(name)
        assert tokenizer.encode("the<s>", allowed_special="all") == [257, 258]
        assert tokenizer.pretokenizer.name == "gpt2"
        assert tokenizer.special_tokens == {"<s>": 258}
    cut = bpe.Tokenizer.load(path, pattern="[a-z]|[^a-z]", special_tokens={"<s>": 258, "<t>": 300})
    assert cut.encode("the<t>", allowed_special=["<t>"]) == [116, 104, 101, 300]


@pytest.mark.parametrize(
    ("vocab", "merges", "named"),
    [
        ({}, "t h\nth", r"merges.txt: merges\[1\]: is not a pair"),
        ({}, "t h\nth e x", r"merges.txt: merges\[1\]: is not a pair"),
        ({}, "t h\nh t", r"merges.txt: merges\[1\]: 'ht', which it makes, is not"),
        ({}, "t h\nt h", "merge 1 .*: the pair is merged twice"),
        ({"the": 256}, "t h", "vocab.json: the file: 'th' and 'the' have the same id 256"),
        ({"the": "256"}, "t h", "vocab.json: the: '256' is not an id"),
    ],
)
def test_a_broken_pair(vocab: Json, merges: str, named: str, tmp_path: Path) -> None:
    path = gpt2_files(tmp_path, {**gpt2_vocab(), **vocab}, merges)
    with pytest.raises(TokenizerFileError, match=named):
        bpe.Tokenizer.load(path)


def test_a_token_of_the_pair_that_may_be_special_or_not(tmp_path: Path) -> None:
    path = gpt2_files(tmp_path, {**gpt2_vocab(), "<é>": 300}, "t h\nth e")
    with pytest.raises(TokenizerFileError, match=r"<é>: is made by no merge.*name the special"):
        bpe.Tokenizer.load(path)
    special = bpe.Tokenizer.load(path, special_tokens={"<é>": 300})
    assert special.encode("<é>", allowed_special="all") == [300]


def test_half_of_a_pair(tmp_path: Path) -> None:
    path = gpt2_files(tmp_path, gpt2_vocab(), "")
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"merges\.txt"):
        bpe.Tokenizer.load(path)


# Any of them.


def test_names_that_say_no_format(tmp_path: Path) -> None:
    refused(tmp_path / "tokenizer.bin", b"", "not known as a tokenizer file by its name")
    with pytest.raises(TokenizerFileError, match=r"holds neither tokenizer\.json, "):
        bpe.Tokenizer.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        bpe.Tokenizer.load(tmp_path / "absent.json")


def test_a_tokenizer_json_defines_its_own_pretokenizer(tmp_path: Path) -> None:
    small_tokenizer().save(tmp_path / "tokenizer.json")
    for more in ({"pretokenizer": "gpt2"}, {"pattern": "a"}, {"special_tokens": {"<s>": 1}}):
        with pytest.raises(TokenizerFileError, match="defines its own pre-tokenizer"):
            bpe.Tokenizer.load(tmp_path / "tokenizer.json", **more)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("tokenizer.json", lambda: edited(GOOD, "model.vocab.th", 900_000).encode()),
        ("x.tiktoken", lambda: ranks((5, b"BQ== 900000"))),
        ("tokenizer.json", lambda: edited(GOOD, "model.vocab.th", 10**9).encode()),
    ],
)
def test_memory_is_bounded_by_the_file(
    name: str, write: Callable[[], bytes], tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(write())
    tracemalloc.start()
    try:
        bpe.Tokenizer.load(tmp_path / name)
    except BpeError:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 128 << 20
