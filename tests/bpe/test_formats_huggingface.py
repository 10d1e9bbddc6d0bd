"""tokenizer.json: ours opened by Hugging Face's libraries, theirs opened here, with equal ids."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

import bpe
from bpe.formats.huggingface_cuts import NAMED
from bpe.pretokenizer import LOSSY, PATTERNS
from tests.bpe.huggingface import ids_of, loaded, written
from tests.bpe.texts import CHARACTERS, library_sources
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


def test_a_name_that_drops_text_has_a_step_of_its_own() -> None:
    """Else it would be written as a Split that keeps what its pattern does not match."""
    patterns = {name for name, pattern in NAMED.items() if isinstance(pattern, str)}
    assert not patterns & LOSSY, "bpe/pretokenizer.py: give it a step in _HUGGINGFACE"


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


def test_special_tokens(pair: tuple[bpe.Tokenizer, tokenizers.Tokenizer]) -> None:
    check(pair, "one<|endoftext|> two <|end|><|endoftext|>'s\n<|end|")


def test_transformers(pair: tuple[bpe.Tokenizer, tokenizers.Tokenizer], tmp_path: Path) -> None:
    ours, _ = pair
    ours.save(tmp_path / "tokenizer.json")
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    text = "It's  12345 words,\n\nand <|end|> é漢語🙂"
    assert theirs(text)["input_ids"] == ours.encode(text, allowed_special="all")
    assert len(theirs) == len(ours)


def test_the_file_is_as_they_write_it(
    pair: tuple[bpe.Tokenizer, tokenizers.Tokenizer], tmp_path: Path
) -> None:
    ours, theirs = pair
    theirs.save(str(tmp_path / "theirs.json"))
    assert ours.to_json() == (tmp_path / "theirs.json").read_text()


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
def test_published_vocabularies(name: str, corpus: str, tmp_path: Path) -> None:
    ours = bpe.Tokenizer.load(shared_file(f"vocabs/{name}"))
    path = tmp_path / "tokenizer.json"
    ours.save(path)
    theirs = tokenizers.Tokenizer.from_file(str(path))
    column = pq.read_table(shared_file(f"corpora/{corpus}.parquet"), columns=["text"])["text"]
    texts = [column[row].as_py()[:20_000] for row in range(0, len(column), len(column) // 100)]
    # Only where both agree on what a letter is: Oniguruma's Unicode is older than 16.0.
    for text, encoded in zip(texts, theirs.encode_batch(texts), strict=True):
        assert encoded.ids == ours.encode(text)


# Files that they write.

SPLIT = PATTERNS["llama3"]


def split(pattern: str, behavior: str = "isolated", invert: bool = False) -> Any:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(pattern), behavior, invert=invert),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


@pytest.mark.parametrize(
    ("pre_tokenizer", "expected"),
    [
        (pre_tokenizers.ByteLevel(add_prefix_space=False), "gpt2"),
        (pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False), "none"),
        (split(SPLIT), "llama3"),
        (split(SPLIT, "removed", invert=True), "llama3"),
        (split(PATTERNS["qwen2"]), "qwen2"),
        (split(PATTERNS["o200k"]), "o200k"),
        (split(r"\p{N}|[^\r\n]"), r"\p{N}|[^\r\n]"),
        (split(r"\A\s|\w\Z|\s\z".replace(r"\w", "[a-z]")), r"\A\s|[a-z]$|\s\Z"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("decoder", [decoders.ByteLevel(), None])
def test_what_they_train_and_save(
    pre_tokenizer: Any, expected: str, decoder: Any, tmp_path: Path
) -> None:
    theirs = tokenizers.Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizer
    if decoder:
        theirs.decoder = decoder
        theirs.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=2000,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [source.decode("utf-8", "replace") for source in library_sources(100_000)]
    theirs.train_from_iterator(texts, trainer)
    theirs.add_tokens(["<tool>", "foo bar"])
    ours = loaded(theirs)
    assert expected in (ours.pretokenizer.name, ours.pretokenizer.pattern)
    assert list(ours.special_tokens) == ["<s>", "</s>"]
    assert list(ours.added_tokens) == ["<tool>", "foo bar"]
    for text in (*texts[:5], "a<s> <tool>b</s>foo barfoo", "It's 1234  \n x é漢語🙂 "):
        assert ours.encode(text, allowed_special="all") == ids_of(theirs, text)
    # What we write of it is read as the same by them.
    again = written(ours)
    assert again.get_vocab() == theirs.get_vocab()
    assert ids_of(again, texts[0]) == ids_of(theirs, texts[0])


def test_tokens_that_are_added_get_the_ids_they_have_there(tmp_path: Path) -> None:
    theirs = written(small_tokenizer(special_tokens=()))
    theirs.add_tokens(["<a>", "<b>"])
    theirs.add_special_tokens(["<c>"])
    # Out of the vocabulary, where they have written them, and into added_tokens alone.
    file = json.loads(theirs.to_str())
    file["model"]["vocab"] = {
        name: id_ for name, id_ in file["model"]["vocab"].items() if name not in ("<a>", "<b>")
    }
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(file))
    ours, again = bpe.Tokenizer.load(path), tokenizers.Tokenizer.from_file(str(path))
    assert {**ours.added_tokens, **ours.special_tokens} == {
        token: again.token_to_id(token) for token in ("<a>", "<b>", "<c>")
    }


def test_old_files_have_merges_as_strings_and_no_type(tmp_path: Path) -> None:
    ours = small_tokenizer("gpt2", special_tokens=())
    file = json.loads(ours.to_json())
    file["model"]["merges"] = [" ".join(merge) for merge in file["model"]["merges"]]
    for key in ("type", "byte_fallback", "ignore_merges"):
        del file["model"][key]
    file["model"] |= {"continuing_subword_prefix": "", "end_of_word_suffix": ""}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(file))
    assert bpe.Tokenizer.load(path) == ours
    assert tokenizers.Tokenizer.from_file(str(path)).get_vocab_size() == len(ours)


def test_a_template_is_kept_and_not_applied(tmp_path: Path) -> None:
    theirs = written(small_tokenizer())
    end = theirs.token_to_id("<|end|>")
    theirs.post_processor = processors.TemplateProcessing(
        single="<|end|> $A", special_tokens=[("<|end|>", end)]
    )
    ours = loaded(theirs)
    assert ours.encode("word") == ids_of(theirs, "word")
    assert written(ours).encode("word").ids == [end, *ours.encode("word")]
    assert ours.to_json() == theirs.to_str(pretty=True)


# Post-processors.

BEGIN = {"<s>": 0, "</s>": 1}


@pytest.mark.parametrize(
    ("processor", "named"),
    [
        (None, None),
        (processors.ByteLevel(trim_offsets=False), None),
        (
            processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[*BEGIN.items()]),
            "TemplateProcessing, which adds '<s>' and '</s>' to each text in Hugging Face's",
        ),
        (
            processors.Sequence(
                [
                    processors.ByteLevel(),
                    processors.TemplateProcessing(
                        single="<s> $A", special_tokens=[("<s>", 0)]
                    ),
                ]
            ),
            "TemplateProcessing, which adds '<s>' to each text",
        ),
        (
            processors.BertProcessing(("</s>", 1), ("<s>", 0)),
            "BertProcessing, which adds '<s>' and '</s>'",
        ),
        (
            processors.RobertaProcessing(("</s>", 1), ("<s>", 0)),
            "RobertaProcessing, which adds '<s>' and '</s>'",
        ),
    ],
)  # fmt: skip
def test_what_of_a_file_is_not_applied_is_said(
    processor: Any, named: str | None, tmp_path: Path
) -> None:
    counts = bpe.count_pretokens(["low lower lowest"])
    trained = bpe.train(counts, vocab_size=262, special_tokens=list(BEGIN))
    theirs = written(trained)
    if processor is not None:
        theirs.post_processor = processor
    ours = loaded(theirs)
    assert ours.encode("low") == ids_of(theirs, "low")
    assert ("post-processor not applied" in repr(ours)) == (named is not None)
    if named is None:
        assert ours.not_applied == ()
        assert ours.encode("low") == theirs.encode("low").ids
        return
    (said,) = ours.not_applied
    assert named in said
    assert ours.encode("low") != theirs.encode("low").ids


@pytest.mark.parametrize("single", [None, 5, [{}], ["$A"], [{"SpecialToken": 7}]])
def test_a_broken_template_is_not_applied_either(single: Any, tmp_path: Path) -> None:
    trained = bpe.train(bpe.count_pretokens(["low"]), vocab_size=256)
    file = json.loads(trained.to_json())
    file["post_processor"] = {"type": "TemplateProcessing", "single": single}
    (tmp_path / "tokenizer.json").write_text(json.dumps(file), "utf-8")
    (said,) = bpe.Tokenizer.load(tmp_path / "tokenizer.json").not_applied
    assert "TemplateProcessing, which adds tokens to each text" in said
