"""Tokenizer files of every format from every other, loaded by the libraries that made the formats.

What a format cannot hold is an error that names it, and nothing is written.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import tiktoken
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tiktoken.load import load_tiktoken_bpe
from tokenizers import models, pre_tokenizers, processors
from transformers import GPT2TokenizerFast

import bpe
from bpe.errors import TokenizerError, TokenizerFileError
from bpe.formats import FORMATS, LEAVE_OUT, sentencepiece
from bpe.pretokenizer import PATTERNS
from tests.bpe.texts import library_sources
from tests.bpe.vocabularies import BYTES, MergeTable, merge_tables, ranked_tokens, write_ranks
from tests.examples import examples
from tests.shared_data import shared_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from bpe.formats.format import Format

END = "<|endoftext|>"
TEXTS = [
    *(source.decode("utf-8", "replace") for source in library_sources(60_000)),
    "It's 12345 words,\n\n  and é漢語🙂 <|endoftext|>\t \n end",
    "",
]
NAMES = ("tokenizer.json", "x.tiktoken", "vocab.json")


@pytest.fixture(scope="module", autouse=True)
def _no_cache() -> Iterator[None]:
    """tiktoken keeps what it read by its path alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", "")
        yield


@pytest.fixture(scope="module")
def trained() -> bpe.Tokenizer:
    """Trained here, with GPT-2's way to cut text; its special token comes first."""
    return bpe.train(bpe.count_pretokens(TEXTS), vocab_size=1500, special_tokens=[END])


def made_of(tokenizer: bpe.Tokenizer, **changes: Any) -> bpe.Tokenizer:
    """Another tokenizer with some parts changed."""
    parts = {
        name: getattr(tokenizer, name)
        for name in ("tokens", "merges", "pretokenizer", "special_tokens", "added_tokens")
    }
    return bpe.Tokenizer(**{**parts, **changes})


def small(*merges: tuple[int, int, int], tokens: tuple[bytes, ...], **more: Any) -> bpe.Tokenizer:
    cut = bpe.Pretokenizer("gpt2")
    return bpe.Tokenizer(tokens=[*BYTES, *tokens], merges=merges, pretokenizer=cut, **more)


def same_ids(ours: bpe.Tokenizer, theirs: Callable[[str], list[int]]) -> None:
    for text in TEXTS:
        assert theirs(text) == ours.encode(text)


# Round trips.


@pytest.mark.parametrize("first", NAMES)
@pytest.mark.parametrize("second", NAMES)
def test_from_every_format_to_every_other_and_back(
    first: str, second: str, trained: bpe.Tokenizer, tmp_path: Path
) -> None:
    tokenizer = made_of(trained, ignore_merges="tiktoken" in first)
    if "x.tiktoken" in (first, second):  # which does not say what is special
        tokenizer = made_of(
            tokenizer,
            tokens=[None, *tokenizer.tokens[1:]],
            special_tokens={},
            ignore_merges="tiktoken" in first,
        )
    more: dict[str, Any] = {"pretokenizer": "gpt2"} if "tiktoken" in first else {}
    tokenizer.save(tmp_path / first)
    loaded = bpe.Tokenizer.load(tmp_path / first, **more)
    assert loaded == tokenizer
    (tmp_path / "other").mkdir()
    loaded.save(tmp_path / "other" / second)
    more = {"pretokenizer": "gpt2"} if "tiktoken" in second else {}
    converted = bpe.Tokenizer.load(tmp_path / "other" / second, **more)
    assert converted.tokens == tokenizer.tokens
    assert converted.merges == tokenizer.merges
    assert converted.special_tokens == tokenizer.special_tokens
    assert converted.pretokenizer == tokenizer.pretokenizer
    same_ids(tokenizer, converted.encode)
    (tmp_path / "back").mkdir()
    converted.save(tmp_path / "back" / first)
    if "tokenizer.json" in (first, second) and second != "x.tiktoken":
        assert (tmp_path / "back" / first).read_bytes() == (tmp_path / first).read_bytes()


@pytest.mark.shared
@pytest.mark.parametrize(
    ("source", "target", "published"),
    [
        ("gpt2_vocab.json", "x.tiktoken", "r50k_base.tiktoken"),
        ("cl100k_base.tiktoken", "x.tiktoken", "cl100k_base.tiktoken"),
        ("o200k_base.tiktoken", "x.tiktoken", "o200k_base.tiktoken"),
    ],
)
def test_published_ranks_are_written_byte_for_byte(
    source: str, target: str, published: str, tmp_path: Path
) -> None:
    tokenizer = bpe.Tokenizer.load(shared_file(f"vocabs/{source}"))
    tokenizer.save(tmp_path / "tokenizer.json")
    bpe.Tokenizer.load(tmp_path / "tokenizer.json").save(tmp_path / target)
    assert (tmp_path / target).read_bytes() == shared_file(f"vocabs/{published}").read_bytes()
    # Recognised, it needs nothing that the file does not say.
    again = bpe.Tokenizer.load(tmp_path / target)
    assert again == bpe.Tokenizer.load(shared_file(f"vocabs/{published}"))
    same_ids(tokenizer, again.encode)


@pytest.mark.shared
def test_the_published_pair_from_the_published_ranks(tmp_path: Path) -> None:
    bpe.Tokenizer.load(shared_file("vocabs/r50k_base.tiktoken")).save(tmp_path / "vocab.json")
    theirs = json.loads(shared_file("vocabs/gpt2_vocab.json").read_text("utf-8"))
    assert json.loads((tmp_path / "vocab.json").read_text("utf-8")) == theirs
    merges = shared_file("vocabs/gpt2_merges.txt").read_text("utf-8")
    assert (tmp_path / "merges.txt").read_text("utf-8").removeprefix("#version: 0.2\n") == merges


# What we write, read by others.


def test_tiktoken_reads_the_ranks(trained: bpe.Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    trained.save(path, leave_out=["special-tokens"])
    theirs = tiktoken.Encoding(
        "x",
        pat_str=PATTERNS["gpt2"],
        mergeable_ranks=load_tiktoken_bpe(str(path)),
        special_tokens=dict(trained.special_tokens),
    )
    same_ids(trained, lambda text: theirs.encode(text, disallowed_special=()))
    text = f"one{END} two"
    assert theirs.encode(text, allowed_special="all") == trained.encode(text, allowed_special="all")
    back = bpe.Tokenizer.load(path, pretokenizer="gpt2", special_tokens={END: 0})
    assert (back.tokens, back.merges) == (trained.tokens, trained.merges)


def test_huggingface_reads_the_pair(trained: bpe.Tokenizer, tmp_path: Path) -> None:
    trained.save(tmp_path / "vocab.json")
    files = (str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"))
    plain = tokenizers.Tokenizer(models.BPE.from_file(*files))
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    same_ids(trained, lambda text: plain.encode(text).ids)
    theirs = GPT2TokenizerFast.from_pretrained(str(tmp_path))
    text = f"one{END} two é"
    assert theirs(text)["input_ids"] == trained.encode(text, allowed_special="all")
    assert len(theirs) == len(trained)


def test_the_pair_is_as_they_write_it(trained: bpe.Tokenizer, tmp_path: Path) -> None:
    trained.save(tmp_path / "merges.txt")  # either name means both
    theirs = models.BPE.from_file(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"))
    (tmp_path / "theirs").mkdir()
    theirs.save(str(tmp_path / "theirs"))
    for name in ("vocab.json", "merges.txt"):
        assert (tmp_path / "theirs" / name).read_text() == (tmp_path / name).read_text()


# What they write, read by us.


def test_files_that_tokenizers_trained_and_saved(tmp_path: Path) -> None:
    theirs = tokenizers.ByteLevelBPETokenizer()
    theirs.train_from_iterator(TEXTS, vocab_size=1200, special_tokens=[END], show_progress=False)
    theirs.save_model(str(tmp_path))
    theirs.save(str(tmp_path / "tokenizer.json"))
    for name in ("vocab.json", "tokenizer.json"):
        ours = bpe.Tokenizer.load(tmp_path / name)
        assert ours.special_tokens == {END: 0}
        for text in (text for text in TEXTS if END not in text):
            assert ours.encode(text) == theirs.encode(text).ids
    # What we make of them is read by tiktoken as the same.
    bpe.Tokenizer.load(tmp_path / "vocab.json").save(
        tmp_path / "x.tiktoken", leave_out=["special-tokens"]
    )
    ranks = load_tiktoken_bpe(str(tmp_path / "x.tiktoken"))
    encoding = tiktoken.Encoding(
        "x", pat_str=PATTERNS["gpt2"], mergeable_ranks=ranks, special_tokens={}
    )
    same_ids(ours, lambda text: encoding.encode(text, disallowed_special=()))


@pytest.mark.shared
def test_files_that_transformers_saved(tmp_path: Path) -> None:
    shared_file("vocabs/gpt2_vocab.json")
    theirs = GPT2TokenizerFast(
        vocab=str(shared_file("vocabs/gpt2_vocab.json")),
        merges=str(shared_file("vocabs/gpt2_merges.txt")),
    )
    theirs.save_pretrained(str(tmp_path))
    ours = bpe.Tokenizer.load(tmp_path)
    assert ours.special_tokens == {END: 50256}
    text = f"one{END} two é漢語"
    assert ours.encode(text, allowed_special="all") == theirs(text)["input_ids"]


@pytest.mark.shared
def test_special_tokens_by_name(tmp_path: Path) -> None:
    path = shared_file("vocabs/cl100k_base.tiktoken")
    one = bpe.Tokenizer.load(path, special_tokens=["<|endofprompt|>"])
    assert one.special_tokens == {"<|endofprompt|>": 100276}
    two = bpe.Tokenizer.load(path, special_tokens={"<|endofprompt|>": None, "<|mine|>": 100300})
    assert two.special_tokens == {"<|endofprompt|>": 100276, "<|mine|>": 100300}
    pair = bpe.Tokenizer.load(shared_file("vocabs/gpt2_vocab.json"), special_tokens=[END])
    assert pair.special_tokens == {END: 50256}
    with pytest.raises(TokenizerFileError, match="has no id in this file"):
        bpe.Tokenizer.load(path, special_tokens=["<|mine|>"])
    with pytest.raises(TokenizerFileError, match="given as one str"):
        bpe.Tokenizer.load(path, special_tokens="<|mine|>")


# Merges that ranks imply.


@given(table=merge_tables(), text=st.text("abc", max_size=60), whole=st.booleans())
@examples(200)
def test_ranks_are_written_only_where_tiktoken_gives_the_same_ids(
    table: MergeTable, text: str, whole: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tokens, merges = table
    cut = bpe.Pretokenizer("none")
    ours = bpe.Tokenizer(tokens=tokens, merges=merges, pretokenizer=cut, ignore_merges=whole)
    path = tmp_path_factory.getbasetemp() / "any.tiktoken"
    try:
        ours.save(path)
    except TokenizerError:
        return
    theirs = tiktoken.Encoding(
        "x", pat_str=r"[\s\S]+", mergeable_ranks=load_tiktoken_bpe(str(path)), special_tokens={}
    )
    assert theirs.encode(text) == ours.encode(text)


def test_ranks_of_strings_that_nobody_trained(tmp_path: Path) -> None:
    path = write_ranks(tmp_path / "x.tiktoken", ranked_tokens())
    ours = bpe.Tokenizer.load(path, pretokenizer="gpt2")
    ours.save(tmp_path / "y.tiktoken")
    assert (tmp_path / "y.tiktoken").read_bytes() == path.read_bytes()
    # Many of them nothing merges to: they are looked up, which merges.txt cannot say.
    with pytest.raises(TokenizerError, match="only ignore_merges finds"):
        ours.save(tmp_path / "vocab.json", leave_out=LEAVE_OUT)


# What the formats cannot hold.

AB = (97, 98, 256)


@pytest.mark.parametrize(
    ("name", "tokenizer", "named"),
    [
        (
            "x.tiktoken",
            lambda: small(AB, tokens=(b"ab", b"<s>"), special_tokens={"<s>": 257}),
            r"special tokens '<s>' \(257\).*give `leave_out` special-tokens;",
        ),
        (
            "x.tiktoken",
            lambda: small(AB, tokens=(b"ab", b"<s>"), added_tokens={"<s>": 257}),
            r"added tokens '<s>' \(257\).*give `leave_out` added-tokens;",
        ),
        (
            "vocab.json",
            lambda: small(AB, tokens=(b"ab", b"<s>"), added_tokens={"<s>": 257}),
            r"added tokens '<s>' \(257\).*give `leave_out` added-tokens;",
        ),
        (
            "x.tiktoken",
            lambda: small(AB, tokens=(b"ab",), post_processor={"type": "TemplateProcessing"}),
            r"post-processor TemplateProcessing, .*give `leave_out` post-processor;",
        ),
        (
            "vocab.json",
            lambda: made_of(
                small(AB, tokens=(b"ab",)), pretokenizer=bpe.Pretokenizer(pattern="a|b")
            ),
            r"a pre-tokenizer other than gpt2.*give `leave_out` pretokenizer;",
        ),
        (
            "x.tiktoken",
            lambda: small(AB, tokens=(b"ab", b"abc")),
            r"tokens that merging does not give.*b'abc' \(257\)",
        ),
        (
            "vocab.json",
            lambda: small(AB, tokens=(b"ab", b"abc"), ignore_merges=True),
            r"tokens that only ignore_merges finds: b'abc' \(257\)",
        ),
        (
            "vocab.json",
            lambda: small(AB, tokens=(b"ab", b"abc")),
            r"tokens that no merge makes, which would be special there: b'abc' \(257\)",
        ),
        (
            "x.tiktoken",
            lambda: small((97, 98, 257), (257, 99, 256), tokens=(b"abc", b"ab")),
            r"order is that of the ids, and here b'ab' \(257\) is merged before b'abc' \(256\)",
        ),
        (
            "x.tiktoken",  # "abc" is (a, bc) here; by the ranks it is (ab, c)
            lambda: small(
                *((98, 99, 257), (97, 257, 258), (97, 98, 256)), tokens=(b"ab", b"bc", b"abc")
            ),
            r"b'abc' .* is merged from b'ab' .*, b'c' .* here it is from b'a' .*, b'bc' \(257\)",
        ),
        (
            "vocab.json",
            lambda: small(tokens=("é".encode(),), special_tokens={"é": 256}),
            "both the tokens|special token 'é'",
        ),
    ],
)
def test_what_a_format_cannot_hold_is_named_and_nothing_is_written(
    name: str, tokenizer: Callable[[], bpe.Tokenizer], named: str, tmp_path: Path
) -> None:
    with pytest.raises(TokenizerError, match=named):
        tokenizer().save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_what_is_left_out_is_what_the_caller_names(tmp_path: Path) -> None:
    tokenizer = small(
        AB, tokens=(b"ab", b"<s>", b"<t>"), special_tokens={"<s>": 257}, added_tokens={"<t>": 258}
    )
    path = tmp_path / "x.tiktoken"
    with pytest.raises(TokenizerError, match=r"give `leave_out` added-tokens;"):
        tokenizer.save(path, leave_out=["special-tokens"])
    tokenizer.save(path, leave_out=["special-tokens", "added-tokens"])
    assert len(load_tiktoken_bpe(str(path))) == 257
    tokenizer.save(tmp_path / "vocab.json", leave_out=["special-tokens", "added-tokens"])
    assert "<s>" not in json.loads((tmp_path / "vocab.json").read_text())
    with pytest.raises(TokenizerError, match="leave_out has no 'merges'"):
        tokenizer.save(path, leave_out=["merges"])
    with pytest.raises(TokenizerError, match="not a str"):
        tokenizer.save(path, leave_out="merges")


def test_post_processors_that_add_nothing_are_no_loss(tmp_path: Path) -> None:
    theirs = tokenizers.Tokenizer.from_str(small(AB, tokens=(b"ab",)).to_json())
    theirs.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False)])
    theirs.save(str(tmp_path / "tokenizer.json"))
    bpe.Tokenizer.load(tmp_path / "tokenizer.json").save(tmp_path / "x.tiktoken")


def test_names_that_say_no_format(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="holds BPE over characters"):
        small(AB, tokens=(b"ab",)).save(tmp_path / "tokenizer.model")
    small(AB, tokens=(b"ab",)).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.json"]


def test_ranks_in_a_file_called_model(trained: bpe.Tokenizer, tmp_path: Path) -> None:
    # As Llama 3 was published.
    trained.save(tmp_path / "x.tiktoken", leave_out=["special-tokens"])
    (tmp_path / "x.tiktoken").rename(tmp_path / "tokenizer.model")
    loaded = bpe.Tokenizer.load(tmp_path, pretokenizer="gpt2", special_tokens={END: 0})
    assert loaded.tokens == trained.tokens


def test_how_text_is_cut_is_given_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    cut = bpe.Pretokenizer(pattern=(r"\p{N}", "llama3"), normalizer=("nfkc",), never_split=("url",))
    tokenizer = made_of(small(AB, tokens=(b"ab",)), pretokenizer=cut)
    path = tmp_path / "x.tiktoken"
    tokenizer.save(path, leave_out=["normalizer", "never-split"])
    for more in (
        {"pretokenizer": cut},
        {"pattern": cut.pattern, "normalizer": ["nfkc"], "never_split": ["url"]},
    ):
        back = bpe.Tokenizer.load(path, **more)
        assert back.pretokenizer == cut
        assert back.encode("ﬁ abab https://ab.ab 12") == tokenizer.encode("ﬁ abab https://ab.ab 12")
    with pytest.raises(bpe.errors.PretokenizerError, match="either a name or a pattern"):
        bpe.Tokenizer.load(path, normalizer=["nfkc"])


WRITTEN = [format_ for format_ in FORMATS if format_ is not sentencepiece.FORMAT]


@pytest.mark.parametrize("format_", WRITTEN, ids=lambda format_: format_.files)
def test_every_format_reads_what_it_writes(format_: Format, tmp_path: Path) -> None:
    tokenizer = bpe.Tokenizer(tokens=BYTES, merges=(), pretokenizer=bpe.Pretokenizer("gpt2"))
    path = tmp_path / format_.files.split()[0].replace("*", "x-")
    assert format_.reads(path)
    assert format_.writes(path)
    tokenizer.save(path)
    cut = None if format_.self_contained else "gpt2"
    assert bpe.Tokenizer.load(path, pretokenizer=cut).encode("a b") == tokenizer.encode("a b")
    written = {file.name for file in tmp_path.iterdir()}
    assert written == {path.name, *(file.name for file in format_.companions(path))}
    assert all(name.endswith(format_.endings) for name in (*written, *format_.usual_names))


@pytest.mark.parametrize("format_", WRITTEN, ids=lambda format_: format_.files)
def test_a_directory_is_read_by_the_usual_names(format_: Format, tmp_path: Path) -> None:
    tokenizer = bpe.Tokenizer(tokens=BYTES, merges=(), pretokenizer=bpe.Pretokenizer("gpt2"))
    path = tmp_path / "x" / format_.files.split()[0].replace("*", "x-")
    path.parent.mkdir()
    tokenizer.save(path)
    path.rename(tmp_path / format_.usual_names[0])
    for file, name in zip(format_.companions(path), format_.usual_names[1:], strict=True):
        file.rename(tmp_path / name)
    cut = None if format_.self_contained else "gpt2"
    assert bpe.Tokenizer.load(tmp_path, pretokenizer=cut).encode("a b") == tokenizer.encode("a b")


def test_an_unknown_name_is_refused_with_the_names_of_all_formats(tmp_path: Path) -> None:
    tokenizer = bpe.Tokenizer(tokens=BYTES, merges=(), pretokenizer=bpe.Pretokenizer("gpt2"))
    with pytest.raises(TokenizerError, match="not known as a tokenizer file") as caught:
        tokenizer.save(tmp_path / "x.txt")
    assert all(format_.files in str(caught.value) for format_ in FORMATS)
