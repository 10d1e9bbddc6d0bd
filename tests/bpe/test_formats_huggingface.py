"""tokenizer.json: ours opened by Hugging Face's libraries, theirs opened here, with equal ids."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import processors
from transformers import PreTrainedTokenizerFast

import bpe
from tests.bpe.huggingface import edited, ids_of, loaded, with_parts, written
from tests.bpe.texts import CHARACTERS
from tests.bpe.vocabularies import MergeTable, merge_tables, small_tokenizer
from tests.examples import examples
from tests.shared_data import LONG, shared_file

if TYPE_CHECKING:
    from pathlib import Path

# Oniguruma follows an older Unicode than ours; these characters have long been what they are.
OLD_CHARACTERS = st.sampled_from(CHARACTERS) | st.characters(max_codepoint=0x4FF)
PATTERN = r"(?i:'s|'t)|\p{Lu}\p{Ll}*|[\p{Ll}\p{M}]{1,4}| ?[^\s\p{L}]+$|\s+(?!\S)|\s"


@pytest.fixture(
    scope="module",
    params=[
        (name, whole)
        for name in (*bpe.PRETOKENIZERS, PATTERN)
        for whole in (False, True)
        if LONG or not whole or name == PATTERN
    ],
    ids=str,
)
def pair(request: pytest.FixtureRequest) -> tuple[bpe.Tokenizer, tokenizers.Tokenizer]:
    name, whole = request.param
    pattern = PATTERN if name == PATTERN else None
    ours = small_tokenizer(
        name, pattern=pattern, ignore_merges=whole, special_tokens=("<|endoftext|>", "<|end|>")
    )
    return ours, written(ours)


def check(pair: tuple[bpe.Tokenizer, tokenizers.Tokenizer], text: str) -> None:
    ours, theirs = pair
    encoded = ours.encode(text, allowed_special="all")
    assert encoded == ids_of(theirs, text)
    if ours.lossless:
        assert theirs.decode(encoded, skip_special_tokens=False) == text


@given(texts=st.lists(OLD_CHARACTERS, max_size=24))
@examples(60)
def test_hard_text(texts: list[str], pair: tuple[bpe.Tokenizer, tokenizers.Tokenizer]) -> None:
    check(pair, "".join(texts))


def test_what_they_read_they_write_as_we_do(
    pair: tuple[bpe.Tokenizer, tokenizers.Tokenizer], tmp_path: Path
) -> None:
    check(pair, "one<|endoftext|> two <|end|><|endoftext|>'s\n<|end|")
    ours, theirs = pair
    path = tmp_path / "theirs.json"
    theirs.save(str(path))
    assert ours.to_json() == path.read_text()
    wrapped = PreTrainedTokenizerFast(tokenizer_file=str(path))
    text = "It's  12345 words,\n\nand <|end|> é漢語🙂"
    assert wrapped(text)["input_ids"] == ours.encode(text, allowed_special="all")
    assert len(wrapped) == len(ours)


@given(table=merge_tables(), text=st.text("abc", max_size=80), whole=st.booleans())
@settings(deadline=None)
def test_any_merges(table: MergeTable, text: str, whole: bool) -> None:
    tokens, merges = table
    ours = bpe.Tokenizer(
        tokens=tokens,
        merges=merges,
        pretokenizer=bpe.Pretokenizer("none"),
        ignore_merges=whole,
    )
    assert ids_of(written(ours), text) == ours.encode(text)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["gpt2_vocab.json", "cl100k_base.tiktoken", "o200k_base.tiktoken"])
@pytest.mark.parametrize("corpus", ["en", "multi"])
def test_published_vocabularies(name: str, corpus: str) -> None:
    ours = bpe.Tokenizer.load(shared_file(f"vocabs/{name}"))
    theirs = written(ours)
    column = pq.read_table(shared_file(f"corpora/{corpus}.parquet"), columns=["text"])["text"]
    texts = [column[row].as_py()[:20_000] for row in range(0, len(column), len(column) // 100)]
    # Only where both agree on what a letter is: Oniguruma's Unicode is older than 16.0.
    for text, encoded in zip(texts, theirs.encode_batch(texts), strict=True):
        assert encoded.ids == ours.encode(text)


# Files that they write.


def test_old_files_have_merges_as_strings_and_no_type() -> None:
    ours = small_tokenizer("gpt2", special_tokens=())
    file = json.loads(ours.to_json())
    file["model"]["merges"] = [" ".join(merge) for merge in file["model"]["merges"]]
    for key in ("type", "byte_fallback", "ignore_merges"):
        del file["model"][key]
    file["model"] |= {"continuing_subword_prefix": "", "end_of_word_suffix": ""}
    text = json.dumps(file)
    assert loaded(text) == ours
    assert tokenizers.Tokenizer.from_str(text).get_vocab_size() == len(ours)


# Post-processors.

BEGIN = {"<s>": 0, "</s>": 1}
BOTH = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[*BEGIN.items()])
BEFORE = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
ONE = processors.Sequence([processors.ByteLevel(), BEFORE])
PAIR = (("</s>", 1), ("<s>", 0))


@pytest.mark.parametrize(
    ("processor", "named"),
    [
        (None, None),
        (processors.ByteLevel(trim_offsets=False), None),
        (processors.Sequence([processors.ByteLevel(trim_offsets=False)]), None),
        (BOTH, "TemplateProcessing, which adds '<s>' and '</s>' to each text in Hugging Face's"),
        (ONE, "TemplateProcessing, which adds '<s>' to each text"),
        (processors.BertProcessing(*PAIR), "BertProcessing, which adds '<s>' and '</s>'"),
        (processors.RobertaProcessing(*PAIR), "RobertaProcessing, which adds '<s>' and '</s>'"),
    ],
)
def test_what_of_a_file_is_not_applied_is_said_and_kept(processor: Any, named: str | None) -> None:
    counts = bpe.count_pretokens(["low lower lowest"])
    theirs = written(bpe.train(counts, vocab_size=262, special_tokens=list(BEGIN)))
    theirs.post_processor = processor
    ours = loaded(theirs)
    assert ours.encode("low") == ids_of(theirs, "low")
    assert ours.to_json() == theirs.to_str(pretty=True)
    assert ("post-processor not applied" in repr(ours)) == (named is not None)
    if named is None:
        assert ours.not_applied == ()
        assert ours.encode("low") == theirs.encode("low").ids
        return
    (said,) = ours.not_applied
    assert named in said
    assert ours.encode("low") != theirs.encode("low").ids


@pytest.mark.parametrize("single", [None, 5, [{}], ["$A"], [{"SpecialToken": 7}]])
def test_a_broken_template_is_not_applied_either(single: Any) -> None:
    template = {"type": "TemplateProcessing", "single": single}
    (said,) = loaded(edited(with_parts().to_str(), "post_processor", template)).not_applied
    assert "TemplateProcessing, which adds tokens to each text" in said
