"""Tokenizer files of every format: given back by ours, read and written by others' libraries.

What a format cannot hold is an error that names it, and nothing is written.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import tiktoken
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tiktoken.load import load_tiktoken_bpe
from transformers import GPT2TokenizerFast

import bpe
from bpe.errors import TokenizerError, TokenizerFileError
from bpe.formats import FORMATS, sentencepiece
from bpe.formats import tiktoken as ranks
from bpe.special_tokens import TokenFlags
from tests.bpe.models import make
from tests.bpe.test_superwords import with_superwords
from tests.bpe.texts import library_sources
from tests.bpe.vocabularies import MergeTable, byte_tokenizer, merge_tables
from tests.examples import examples
from tests.shared_data import shared_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bpe.formats.format import Format

END = "<|endoftext|>"
TEXTS = [
    *(source.decode("utf-8", "replace") for source in library_sources(60_000)),
    "It's 12345 words,\n\n  and é漢語🙂 \t \n end",
]


@pytest.fixture(scope="module", autouse=True)
def _no_cache() -> Iterator[None]:
    """tiktoken keeps what it read by its path alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", "")
        yield


small = functools.partial(byte_tokenizer, joins=["a|b"])


# Round trips.


@pytest.mark.parametrize(
    "format_",
    [format_ for format_ in FORMATS if format_ is not sentencepiece.FORMAT],
    ids=lambda format_: format_.files,
)
def test_every_format_gives_back_what_it_was_given(format_: Format, tmp_path: Path) -> None:
    """Under any name of its files, and in a directory under the usual ones."""
    trained = bpe.train(bpe.count_pretokens(TEXTS), vocab_size=1500, special_tokens=[END])
    leave_out: list[str] = []
    more: dict[str, Any] = {}
    if format_ is ranks.FORMAT:  # tokens are looked up, and the rest is given again
        leave_out, more = ["special-tokens"], {"pretokenizer": "gpt2", "special_tokens": {END: 0}}
        trained = bpe.Tokenizer(**trained.parts.__getstate__() | {"ignore_merges": True})
    path = tmp_path / "named" / format_.files.split()[0].replace("*", "x-")
    trained.save(path, leave_out=leave_out)
    files = [path, *(file for file, required in format_.companions(path).items() if required)]
    assert {*path.parent.iterdir()} == {*files}
    for file, name in zip(files, format_.usual_names, strict=True):
        shutil.copy(file, tmp_path / name)
    for place in (*files, tmp_path):
        back = bpe.Tokenizer.load(place, **more)
        assert back == trained
        back.save(tmp_path / "again" / path.name, leave_out=leave_out)
        for file in files:
            assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes()


@pytest.mark.shared
@pytest.mark.parametrize(
    ("source", "published"),
    [
        ("gpt2_vocab.json", "r50k_base.tiktoken"),
        ("cl100k_base.tiktoken", "cl100k_base.tiktoken"),
        ("o200k_base.tiktoken", "o200k_base.tiktoken"),
    ],
)
def test_published_ranks_are_written_byte_for_byte(
    source: str, published: str, tmp_path: Path
) -> None:
    bpe.Tokenizer.load(shared_file(f"vocabs/{source}")).save(tmp_path / "tokenizer.json")
    path = tmp_path / "x.tiktoken"
    bpe.Tokenizer.load(tmp_path / "tokenizer.json").save(path)
    assert path.read_bytes() == shared_file(f"vocabs/{published}").read_bytes()
    # Recognised, it needs nothing that the file does not say.
    assert bpe.Tokenizer.load(path) == bpe.Tokenizer.load(shared_file(f"vocabs/{published}"))


@pytest.mark.shared
def test_the_published_pair_from_the_published_ranks(tmp_path: Path) -> None:
    bpe.Tokenizer.load(shared_file("vocabs/r50k_base.tiktoken")).save(tmp_path / "vocab.json")
    theirs = json.loads(shared_file("vocabs/gpt2_vocab.json").read_text("utf-8"))
    assert json.loads((tmp_path / "vocab.json").read_text("utf-8")) == theirs
    merges = shared_file("vocabs/gpt2_merges.txt").read_text("utf-8")
    assert (tmp_path / "merges.txt").read_text("utf-8").removeprefix("#version: 0.2\n") == merges


# Other libraries.


def test_the_pair_is_read_and_written_as_by_hugging_face(tmp_path: Path) -> None:
    theirs = tokenizers.ByteLevelBPETokenizer()
    theirs.train_from_iterator(TEXTS, vocab_size=1200, special_tokens=[END], show_progress=False)
    (tmp_path / "theirs").mkdir()
    theirs.save_model(str(tmp_path / "theirs"))
    ours = bpe.Tokenizer.load(tmp_path / "theirs")
    assert ours.special_tokens == {END: 0}
    for text in TEXTS:
        assert ours.encode(text) == theirs.encode(text).ids
    ours.save(tmp_path / "merges.txt")  # either name means both
    for name in ("vocab.json", "merges.txt"):
        assert (tmp_path / "theirs" / name).read_text() == (tmp_path / name).read_text()
    wrapped = GPT2TokenizerFast.from_pretrained(str(tmp_path))
    text = f"one{END} two é"
    assert wrapped(text)["input_ids"] == ours.encode(text, allowed_special="all")
    assert len(wrapped) == len(ours)


@given(
    table=merge_tables(),
    text=st.lists(st.sampled_from(["a", "b", "c", END]), max_size=60).map("".join),
    whole=st.booleans(),
)
@examples(200)
def test_ranks_are_written_only_where_tiktoken_gives_the_same_ids(
    table: MergeTable, text: str, whole: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tokens, merges = table
    cut = bpe.Pretokenizer("none")
    special = {END: len(tokens)}
    ours = bpe.Tokenizer(
        tokens=[*tokens, END.encode()],
        merges=merges,
        pretokenizer=cut,
        ignore_merges=whole,
        special_tokens=special,
    )
    path = tmp_path_factory.getbasetemp() / "any.tiktoken"
    try:
        ours.save(path, leave_out=["special-tokens"])
    except TokenizerError:
        return
    theirs = tiktoken.Encoding(
        "x",
        pat_str=r"[\s\S]+",
        mergeable_ranks=load_tiktoken_bpe(str(path)),
        special_tokens=special,
    )
    ids = ours.encode(text, allowed_special="all")
    assert theirs.encode(text, allowed_special="all") == ids
    back = bpe.Tokenizer.load(path, pretokenizer=cut, special_tokens=special)
    assert back.encode(text, allowed_special="all") == ids


# What the caller gives on loading.


@pytest.mark.shared
def test_special_tokens_by_name() -> None:
    path = shared_file("vocabs/cl100k_base.tiktoken")
    one = bpe.Tokenizer.load(path, special_tokens=["<|endofprompt|>"])
    assert one.special_tokens == {"<|endofprompt|>": 100276}
    two = bpe.Tokenizer.load(path, special_tokens={"<|endofprompt|>": None, "<|mine|>": 100300})
    assert two.special_tokens == {"<|endofprompt|>": 100276, "<|mine|>": 100300}
    with pytest.raises(TokenizerFileError, match="has no id in this file"):
        bpe.Tokenizer.load(path, special_tokens=["<|mine|>"])
    with pytest.raises(TokenizerFileError, match="given as one str"):
        bpe.Tokenizer.load(path, special_tokens="<|mine|>")


def test_a_normalizer_is_given_with_a_way_to_cut(tmp_path: Path) -> None:
    small("ab").save(tmp_path / "x.tiktoken")
    with pytest.raises(bpe.errors.PretokenizerError, match="either a name or a pattern"):
        bpe.Tokenizer.load(tmp_path / "x.tiktoken", normalizer=["nfkc"])


# What the formats cannot hold.

BEGIN = {"<s>": 257}
STRIPPED = {"<s>": TokenFlags(lstrip=True)}
FLAGGED = small("ab", "<s>", added_tokens=BEGIN, token_flags=STRIPPED)
TEMPLATE = small("ab", post_processor={"type": "TemplateProcessing"})
NORMALIZED = small("ab", pretokenizer=bpe.Pretokenizer("gpt2", normalizer=("nfc",)))
NEVER_SPLIT = small("ab", pretokenizer=bpe.Pretokenizer("gpt2", never_split=("url",)))
OTHER_CUT = small("ab", pretokenizer=bpe.Pretokenizer(pattern="a|b"))
SPECIAL = small("ab", "<s>", special_tokens=BEGIN)
LOSSES = [
    (small("ab", "<s>", added_tokens=BEGIN), ["added-tokens"], r"the added tokens '<s>' \(257\)"),
    (FLAGGED, ["added-tokens", "token-flags"], r"lstrip, rstrip or single_word of '<s>' \(257\)"),
    (TEMPLATE, ["post-processor"], "the post-processor TemplateProcessing, "),
    (NORMALIZED, ["normalizer"], "the normalizer nfc"),
    (NEVER_SPLIT, ["never-split"], "what is never split: url"),
]


@pytest.mark.parametrize(
    ("name", "tokenizer", "losses", "named"),
    [
        *((name, *row) for name in ("x.tiktoken", "vocab.json") for row in LOSSES),
        ("x.tiktoken", SPECIAL, ["special-tokens"], r"the special tokens '<s>' \(257\)"),
        ("vocab.json", OTHER_CUT, ["pretokenizer"], "a pre-tokenizer other than gpt2"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else None,
)
def test_a_loss_is_named_and_must_be_asked_for(
    name: str, tokenizer: bpe.Tokenizer, losses: list[str], named: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    for number, loss in enumerate(losses):
        with pytest.raises(TokenizerError, match=rf"{named}.*`leave_out` {loss}"):
            tokenizer.save(path, leave_out=losses[:number])
        assert list(tmp_path.iterdir()) == []
    tokenizer.save(path, leave_out=losses)
    assert bpe.Tokenizer.load(path, pretokenizer="gpt2").encode("ab") == [256]


def test_losses_are_given_by_their_names(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="leave_out has no 'merges'"):
        small("ab").save(tmp_path / "x.tiktoken", leave_out=["merges"])
    with pytest.raises(TokenizerError, match="leave_out is given as one str"):
        small("ab").save(tmp_path / "x.tiktoken", leave_out="merges")


CHARACTERS = make(["a", "</w>"], model=bpe.CharacterLevel())
SUPERWORDS = with_superwords((" a", " b"), special_tokens={})
LONELY, LOOKED_UP = (small("ab", "abc", ignore_merges=whole) for whole in (False, True))
UNORDERED = small("abc", "ab", joins=["a|b", "ab|c"])
# "abc" is (a, bc) here; by the ranks it is (ab, c).
OTHER_PARTS = small("ab", "bc", "abc", joins=["b|c", "a|bc", "a|b"])
ALL_FILES = ".*".join(re.escape(format_.files) for format_ in reversed(FORMATS))


@pytest.mark.parametrize(
    ("name", "tokenizer", "named"),
    [
        ("x.tiktoken", LONELY, r"merging does not give.*b'abc' \(257\)"),
        ("vocab.json", LOOKED_UP, r"tokens that only ignore_merges finds: b'abc' \(257\)"),
        ("vocab.json", LONELY, r"no merge makes, which would be special there: b'abc' \(257\)"),
        ("x.tiktoken", UNORDERED, r"merge 0 would be of b'ab' and b'c', .* is of b'a' and b'b'"),
        ("x.tiktoken", OTHER_PARTS, r"merge 0 would be of b'a' and b'b', .* is of b'b' and b'c'"),
        ("vocab.json", small("é", joins=(), special_tokens={"é": 256}), "special token 'é'"),
        ("vocab.json", CHARACTERS, "byte-level tokenizers only, .* CharacterLevel"),
        ("x.tiktoken", SUPERWORDS, "cannot hold superwords"),
        ("vocab.json", SUPERWORDS, "cannot hold superwords"),
        ("tokenizer.model", small("ab"), "holds BPE over characters"),
        ("x.txt", small("ab"), f"not known as a tokenizer file.*{ALL_FILES}"),
    ],
)
def test_what_a_format_cannot_hold_is_named_and_nothing_is_written(
    name: str, tokenizer: bpe.Tokenizer, named: str, tmp_path: Path
) -> None:
    with pytest.raises(TokenizerError, match=named):
        tokenizer.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
