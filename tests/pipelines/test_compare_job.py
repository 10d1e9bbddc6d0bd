"""Comparing tokenizers over a corpus: the job, and what its steps do without Beam."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bpe
from bpe.diff import same_tokens, token_sizes
from bpe.errors import TokenizerError
from bpe.explain import visible
from bpe.special_tokens import TokenFlags
from pipelines.compare import job as comparing
from pipelines.compare.result import read_comparison
from pipelines.compare.tokenizers import parse_tokenizers
from pipelines.errors import ConfigError, InputError, RecordError
from pipelines.settings import Execution, InputSettings
from tests import jobs
from tests.pipelines.corpora import (
    ONE,
    SPLIT,
    TWO,
    patterns,
    sentence,
    write_corpus,
    write_jsonl,
    write_rows,
)

if TYPE_CHECKING:
    from pathlib import Path

    from bpe import Tokenizer

TEXTS = [sentence(i, 30) for i in range(40)] + ["", "x1234567  y", "\n\n  tab\t1", "東京 東京"]


def trained(*, pretokenizer: str, vocab_size: int, **options: Any) -> Tokenizer:
    counts = bpe.count_pretokens(TEXTS, pretokenizer=pretokenizer)
    return bpe.train(counts, vocab_size=vocab_size, **options)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    trained(pretokenizer="gpt2", vocab_size=300).save(folder / "small.json")
    trained(pretokenizer="o200k", vocab_size=400).save(folder / "large.json")
    trained(pretokenizer="words", vocab_size=300).save(folder / "words.json")
    trained(pretokenizer="cl100k", vocab_size=290).save(folder / "bare.tiktoken")
    return folder


def compare(
    corpus: Path,
    models: Path,
    *,
    names: tuple[str, ...] = ("small.json", "large.json"),
    execution: Execution = ONE,
    split_size: int | None = SPLIT,
    max_failures: int = 0,
    **options: Any,
) -> dict[str, Any]:
    """Compare tokenizers over a file or a folder."""
    found = patterns(corpus) if corpus.is_dir() else (str(corpus),)
    inputs = InputSettings(patterns=found, split_size=split_size, max_failures=max_failures)
    tokenizers = parse_tokenizers([f"{models}/{name}" for name in names])
    return jobs.compare(inputs=inputs, tokenizers=tokenizers, execution=execution, **options)


def spans(tokenizer: Tokenizer, text: str) -> set[tuple[int, int]]:
    """The offsets of its tokens, in bytes."""
    sizes = (len(tokenizer.token_bytes(id_)) for id_ in tokenizer.encode(text))
    return set(pairwise(accumulate(sizes, initial=0)))


def expected(
    tokenizer: Tokenizer, texts: list[str], *, first: Tokenizer | None = None
) -> dict[str, Any]:
    """The totals, the slow way; the first tokenizer is the baseline."""
    both = [(spans(first or tokenizer, text), spans(tokenizer, text)) for text in texts]
    same = sum(len(ours & theirs) for ours, theirs in both)
    documents = sum(ours == theirs for ours, theirs in both)
    baseline = sum(len(ours) for ours, _ in both)
    ids = [id_ for text in texts for id_ in tokenizer.encode(text)]
    size = sum(len(text.encode()) for text in texts)
    single = sum(len(tokenizer.token_bytes(id_)) == 1 for id_ in ids)
    return {
        "tokens": len(ids),
        "bytes_per_token": size / len(ids) if ids else None,
        "tokens_per_document": len(ids) / len(texts),
        "single_byte_tokens": single,
        "single_byte_share": single / len(ids) if ids else None,
        "unknown_tokens": 0,
        "vocabulary_used": len(set(ids)),
        "same_tokens": same,
        "same_token_share": same / baseline if baseline else None,
        "same_documents": documents,
        "same_document_share": documents / len(texts),
    }


def load(models: Path, *names: str) -> list[Tokenizer]:
    return [bpe.Tokenizer.load(models / name) for name in names]


def test_every_format_is_compared_whatever_the_workers_and_the_splits(
    models: Path, tmp_path: Path
) -> None:
    """Each document as its encoding says, and the same bytes in any job."""
    corpus = write_corpus(tmp_path / "corpus")
    written = []
    for number, (execution, size) in enumerate(((ONE, 10**6), (TWO, 700))):
        path = tmp_path / f"{number}.json"
        asked: dict[str, Any] = {"by": "file", "examples": 5, "output": str(path)}
        result = compare(corpus.folder, models, execution=execution, split_size=size, **asked)
        assert read_comparison(str(path)) == result
        written.append(path.read_bytes())
    assert written[0] == written[1]
    tokenizers = load(models, "small.json", "large.json")
    totals = [expected(one, corpus.texts, first=tokenizers[0]) for one in tokenizers]
    assert result["total"]["tokenizers"] == totals
    assert result["total"]["documents"] == len(corpus.texts)
    assert result["total"]["bytes"] == sum(len(text.encode()) for text in corpus.texts)
    assert [one["name"] for one in result["tokenizers"]] == ["small", "large"]
    assert {group["name"] for group in result["groups"]} == {
        *("a ünï.txt", "b/docs.jsonl", "b/more.jsonl.gz", "c.parquet")
    }
    sizes = [group["bytes"] for group in result["groups"]]
    assert sizes == sorted(sizes, reverse=True)


def test_by_a_column_of_either_format(models: Path, tmp_path: Path) -> None:
    languages = ["en", "de", None]
    rows = [{"text": text, "lang": languages[i % 3]} for i, text in enumerate(TEXTS)]
    corpus = tmp_path / "corpus"
    write_rows(corpus / "a.jsonl", rows[:20])
    table = pa.Table.from_pylist(rows[20:])
    coded = table.set_column(1, "lang", table["lang"].dictionary_encode())
    pq.write_table(coded, corpus / "b.parquet")
    result = compare(corpus, models, split_size=300, by="lang")
    tokenizers = load(models, "small.json", "large.json")
    assert {group["name"] for group in result["groups"]} == {"en", "de", None}
    for group in result["groups"]:
        texts = [str(row["text"]) for row in rows if row["lang"] == group["name"]]
        assert group["documents"] == len(texts)
        totals = [expected(one, texts, first=tokenizers[0]) for one in tokenizers]
        for one in totals:
            del one["vocabulary_used"]  # of the whole corpus alone
        assert group["tokenizers"] == totals


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A file of documents that each have a URL of their own."""
    records = ({"id": i, "text": "low", "tags": ["a"], "url": f"u{i}"} for i in range(6))
    write_rows(tmp_path / "c.jsonl", records)
    return tmp_path / "c.jsonl"


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("lang", "`by` lang: .* no such field"),
        ("id", "each document has its own"),
        ("tags", "name a column of text or numbers"),
        ("url", "`by` url: more than 5 values"),
    ],
)
def test_a_column_that_gives_no_groups(
    models: Path, pages: Path, by: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "MAX_GROUPS", 5)
    with pytest.raises(ConfigError, match=message):
        compare(pages, models, by=by)


def test_bad_records_end_the_job_or_are_counted(models: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(b'{"text": "low"}\nno json\n{"text": "lower"}\n')
    with pytest.raises(RecordError, match=r"c\.jsonl, record at byte 16"):
        compare(path, models)
    result = compare(path, models, max_failures=1)
    assert (result["failures"], result["total"]["documents"]) == (1, 2)
    assert result["bad_records"][0]["place"] == 16


def test_what_one_tokenizer_cannot_encode_is_a_bad_record_for_all(
    models: Path, tmp_path: Path
) -> None:
    closed = trained(pretokenizer="words", vocab_size=40, model=bpe.CharacterLevel())
    closed.save(tmp_path / "closed.json", dialect="beam-bpe")
    small = bpe.Tokenizer.load(models / "small.json")
    small.save(tmp_path / "small.json")
    write_jsonl(tmp_path / "c.jsonl", ["the fox", "HIGH", "lazy dog,"])
    names = ("small.json", "closed.json")
    with pytest.raises(RecordError, match=r"closed: the character 'H' .* has no token"):
        compare(tmp_path / "c.jsonl", tmp_path, names=names)
    result = compare(tmp_path / "c.jsonl", tmp_path, names=names, max_failures=1)
    assert (result["failures"], result["total"]["documents"]) == (1, 2)
    ours, characters = result["total"]["tokenizers"]
    assert ours == expected(small, ["the fox", "lazy dog,"])
    assert characters["same_tokens"] is characters["same_document_share"] is None


def test_tokens_that_take_whitespace_are_not_compared_by_bytes(
    models: Path, tmp_path: Path
) -> None:
    small = bpe.Tokenizer.load(models / "small.json")
    size = len(small)
    names = ("keeps.json", "takes.json")
    for name, takes in zip(names, (False, True), strict=True):
        state = {"tokens": [*small.tokens, b"<x>"], "added_tokens": {"<x>": size}}
        flags = {"token_flags": {"<x>": TokenFlags(rstrip=takes)}}
        bpe.Tokenizer(**small.parts.__getstate__() | state | flags).save(tmp_path / name)
    corpus = write_jsonl(tmp_path / "corpus" / "c.jsonl", ["hello <x>  b", "tail end"])
    for order in (names, names[::-1]):
        tokenizers = compare(corpus.folder, tmp_path, names=order)["total"]["tokenizers"]
        assert tokenizers[1]["same_tokens"] is tokenizers[1]["same_documents"] is None
    first, second = load(tmp_path, *names)
    lists = [one.encode_arrow(["hello <x>  b", "tail end"]) for one in (first, second)]
    with pytest.raises(TokenizerError, match="both must be of the same texts"):
        same_tokens(*lists, sizes=(token_sizes(first), token_sizes(second)))


def test_a_corpus_without_documents(models: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    result = compare(tmp_path / "empty.jsonl", models, by="file")
    assert result["total"]["documents"] == 0
    assert [one["bytes_per_token"] for one in result["total"]["tokenizers"]] == [None, None]


def test_a_tiktoken_file_takes_its_pretokenizer_behind_a_colon(
    models: Path, tmp_path: Path
) -> None:
    corpus = write_jsonl(tmp_path / "corpus" / "c.jsonl", TEXTS)
    result = compare(corpus.folder, models, names=("small.json", "bare.tiktoken:cl100k"))
    assert result["tokenizers"][1]["pretokenizer"] == "cl100k"
    bare = bpe.Tokenizer.load(models / "bare.tiktoken", pretokenizer="cl100k")
    small = bpe.Tokenizer.load(models / "small.json")
    assert result["total"]["tokenizers"][1] == expected(bare, TEXTS, first=small)
    with pytest.raises(ConfigError, match=r"bare\.tiktoken:cl100k"):
        compare(corpus.folder, models, names=("small.json", "bare.tiktoken"))
    with pytest.raises(InputError, match=r"none\.json"):
        compare(corpus.folder, models, names=("small.json", "none.json"))


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["m/tokenizer.json", "n/tokenizer.json"], ["m", "n"]),
        (
            ["x/m/tokenizer.json", "y/m/tokenizer.json"],
            ["x/m/tokenizer.json", "y/m/tokenizer.json"],
        ),
        (["old=a.json", "a.json"], ["old", "a.json:"]),
        (["t.tiktoken:gpt2", "t.tiktoken:cl100k"], ["t.tiktoken:gpt2", "t.tiktoken:cl100k"]),
    ],
)
def test_names_of_tokenizers(texts: list[str], names: list[str]) -> None:
    found = [file.name for file in parse_tokenizers(texts)]
    assert found == [name.removesuffix(":") for name in names]


@pytest.mark.parametrize("texts", [[], ["a.json"], ["x=a", "x=b"], ["", "b"], ["a.json", "a.json"]])
def test_tokenizers_that_cannot_be_compared(texts: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"two|empty|names"):
        parse_tokenizers(texts)


def test_a_runner_elsewhere_needs_a_place_for_the_result(models: Path, tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "corpus" / "c.jsonl", ["low"])
    execution = Execution(runner="PortableRunner", beam_args=("--job_endpoint=127.0.0.1:1",))
    with pytest.raises(ConfigError, match=r"`output` FILE\.json"):
        compare(corpus.folder, models, execution=execution)


def test_files_that_workers_cannot_see_are_refused_before_anything_is_written(
    models: Path, tmp_path: Path
) -> None:
    corpus = write_jsonl(tmp_path / "corpus" / "c.jsonl", ["low"])
    away = Execution(
        runner="PortableRunner",
        beam_args=("--job_endpoint=cluster.invalid:8099", "--environment_type=DOCKER"),
    )
    with pytest.raises(ConfigError, match=r"is read by the DOCKER workers .*`shared_paths`"):
        compare(corpus.folder, models, execution=away, output=str(tmp_path / "out" / "result.json"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus"]


def pieces(tokenizers: list[Tokenizer], text: bytes) -> list[bytes]:
    """The text, cut where all of them cut it."""
    spans = (one.pretokenizer.spans(text) for one in tokenizers)
    places = ({place for span in one for place in span} | {0, len(text)} for one in spans)
    return [text[begin:end] for begin, end in pairwise(sorted(set.intersection(*places)))]


@pytest.mark.parametrize("examples", [1, 7])
def test_differences_are_those_of_all_pieces(models: Path, tmp_path: Path, examples: int) -> None:
    names = ("small.json", "large.json", "words.json")
    tokenizers = load(models, *names)
    corpus = write_jsonl(tmp_path / "corpus" / "c.jsonl", TEXTS)
    result = compare(corpus.folder, models, names=names, examples=examples)
    counts = Counter(one for text in TEXTS for one in pieces(tokenizers, text.encode()))
    for found, other in zip(result["differences"], tokenizers[1:], strict=True):
        more = {p: len(other.encode(p)) - len(tokenizers[0].encode(p)) for p in counts}
        assert found["pieces_with_fewer_tokens"] == sum(n for p, n in counts.items() if more[p] < 0)
        assert found["pieces_with_more_tokens"] == sum(n for p, n in counts.items() if more[p] > 0)
        assert found["pieces_with_as_many_tokens"] == sum(counts[p] for p in counts if not more[p])
        greatest = sorted(counts, key=lambda p: (-abs(counts[p] * more[p]), p))
        shown = [(visible(p), counts[p], counts[p] * more[p]) for p in greatest[:examples]]
        keys = ("piece", "count", "more_tokens")
        assert [tuple(one[key] for key in keys) for one in found["examples"]] == shown
