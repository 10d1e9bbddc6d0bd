"""Documents that a mix takes: which, how many, and what else a job makes of them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bpe
from pipelines import EncodeCorpus
from pipelines.encode.job import EncodeRequest, job_of
from pipelines.encode.measure import (
    choose,
    finished_measure,
    measure_split,
    write_chosen,
)
from pipelines.errors import ConfigError, InputError, OutputError, RecordError, VerificationError
from pipelines.failures import Failures
from pipelines.option import parse_size, parse_whole
from pipelines.output.names import MIX, TIMINGS, manifest_bytes
from pipelines.planned import PlannedTransform
from pipelines.run import run
from pipelines.settings import EncodeSettings, InputSettings, OutputSettings
from tests import jobs
from tests.pipelines.beam_runs import pipeline
from tests.pipelines.corpora import (
    END,
    MODES,
    ONE,
    TWO,
    begun,
    encode,
    sentence,
    tree,
    write_corpus,
)
from tests.pipelines.killing import run_until
from tests.pipelines.object_store import ObjectStore
from tests.pipelines.test_validation import is_held_out

if TYPE_CHECKING:
    from pathlib import Path

MIXED = EncodeSettings(mix=("web=70%", "code=30%"), append_token=END)


def key(name: str, seed: int = 0) -> int:
    """As the documentation says it."""
    salt = seed.to_bytes(16, "big")
    digest = blake2b(name.encode(), digest_size=8, person=b"bpe mix", salt=salt).digest()
    return int.from_bytes(digest, "big")


def write(path: Path, records: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def named(folder: Path, *, split_size: int | None = 1500, max_failures: int = 0) -> InputSettings:
    patterns = (f"web={folder}/web", f"code={folder}/code")
    return InputSettings(patterns=patterns, split_size=split_size, max_failures=max_failures)


def plain(folder: Path, *, split_size: int | None = 1500, max_failures: int = 0) -> InputSettings:
    return InputSettings(
        patterns=(f"{folder}/web", f"{folder}/code"),
        split_size=split_size,
        max_failures=max_failures,
    )


def rows(directory: Path, half: str = "train") -> list[dict[str, Any]]:
    paths = sorted(directory.glob(f"data/{half}-*"))
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    web = {f"web{i}": sentence(i, i % 17) for i in range(120)}
    return web | {f"code{i}": sentence(i + 300, 3 + i % 29) for i in range(60)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, texts: dict[str, str]) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    records = [{"id": id_, "text": text} for id_, text in texts.items()]
    write(folder / "web" / "a.jsonl", records[:50])
    write(folder / "code" / "b.jsonl", records[120:])
    write(folder / "web" / "c.jsonl", records[50:120])
    return folder


def expected(
    texts: dict[str, str], model: Path, asked: dict[str, int], seed: int = 0
) -> dict[str, list[str]]:
    """Of each source the first documents by hash, until they have the tokens asked for."""
    tokenizer = bpe.Tokenizer.load(model)
    taken: dict[str, list[str]] = {}
    for source, tokens in asked.items():
        ids = sorted((id_ for id_ in texts if id_.startswith(source)), key=lambda i: key(i, seed))
        taken[source], total = [], 0
        for id_ in ids:
            if total >= tokens:
                break
            taken[source].append(id_)
            total += len(tokenizer.encode(texts[id_])) + 1
    return taken


@pytest.mark.parametrize(("budget", "seed"), [(1000, 0), (1000, 7), (1, 0), (None, 2**63 - 1)])
def test_the_first_by_hash_are_taken(
    folder: Path,
    model: Path,
    texts: dict[str, str],
    tmp_path: Path,
    budget: int | None,
    seed: int,
) -> None:
    settings = replace(MIXED, token_budget=budget, mix_seed=seed)
    summary = encode(named(folder), model, tmp_path / "ids", encoding=settings)
    tokenizer = bpe.Tokenizer.load(model)
    sizes = {id_: len(tokenizer.encode(text)) + 1 for id_, text in texts.items()}
    has = {s: sum(n for i, n in sizes.items() if i.startswith(s)) for s in ("web", "code")}
    if budget is None:
        budget = min(has["web"] * 10 // 7, has["code"] * 10 // 3)
    asked = {"web": -(-budget * 7 // 10), "code": -(-budget * 3 // 10)}
    taken = expected(texts, model, asked, seed)
    # Files are in the order of the sources.
    ordered = sorted(texts, key=lambda id_: id_.startswith("code"))
    ids = [id_ for id_ in ordered if id_ in taken["web"] + taken["code"]]
    assert [row["id"] for row in rows(tmp_path / "ids")] == ids
    mix = summary.mix
    assert mix is not None
    assert mix.budget == budget
    for source in mix.sources:
        ids = taken[source.name]
        assert (source.asked, source.documents) == (asked[source.name], len(ids))
        assert source.tokens == sum(sizes[id_] for id_ in ids) >= source.asked
        assert source.tokens - sizes[ids[-1]] < source.asked
        assert source.available_tokens == has[source.name]
        assert source.last_hash == f"{key(ids[-1], seed):016x}"
    assert (summary.documents, summary.tokens) == (mix.documents, mix.tokens)
    assert not (tmp_path / "ids" / MIX).exists()
    jobs.verify(directory=str(tmp_path / "ids"), inputs=plain(folder))


def test_a_larger_budget_keeps_the_documents_of_a_smaller_one(
    folder: Path, model: Path, tmp_path: Path
) -> None:
    before: set[str] = set()
    for budget in (300, 900):
        ids = tmp_path / str(budget)
        encode(named(folder), model, ids, encoding=replace(MIXED, token_budget=budget))
        taken = {row["id"] for row in rows(ids)}
        assert before < taken
        before = taken


def test_workers_and_splits_change_nothing(folder: Path, model: Path, tmp_path: Path) -> None:
    settings = replace(MIXED, token_budget=900, pack=16, pack_remainder="carry")
    encode(named(folder), model, tmp_path / "one", encoding=settings)
    encode(named(folder), model, tmp_path / "two", encoding=settings, execution=TWO)
    assert tree(tmp_path / "two") == tree(tmp_path / "one")
    settings = replace(MIXED, token_budget=900)
    for size in (300, None):
        encode(named(folder, split_size=size), model, tmp_path / str(size), encoding=settings)
    assert rows(tmp_path / "300") == rows(tmp_path / "None")


_MODES = ("packed, carried", "shuffled, held out, packed")
_MORE_MODES = (
    "chunks with ends",
    "packed, dropped",
    "packed, best fit",
    "dropout",
    "shuffled, best fit",
)


@pytest.mark.parametrize(
    "mode", [*_MODES, *(pytest.param(mode, marks=pytest.mark.long) for mode in _MORE_MODES)]
)
def test_mixes_go_with_all_rows_and_formats(model: Path, tmp_path: Path, mode: str) -> None:
    corpus = write_corpus(tmp_path / "in" / "all")
    write(tmp_path / "in" / "more" / "a.jsonl", [{"text": sentence(i)} for i in range(50)])
    encoding = replace(MODES[mode], mix=("all=75%", "more=25%"), token_budget=800)
    patterns = (*(f"all={one}" for one in corpus.patterns), f"more={tmp_path}/in/more")
    inputs = InputSettings(patterns=patterns, split_size=700)
    summary = encode(inputs, model, tmp_path / "ids", encoding=encoding, execution=TWO)
    assert summary.mix is not None
    assert summary.tokens + summary.dropped_tokens == summary.mix.tokens
    assert summary.documents == summary.mix.documents < 100
    patterns = (*corpus.patterns, f"{tmp_path}/in/more")
    inputs = InputSettings(patterns=patterns, split_size=700)
    jobs.verify(directory=str(tmp_path / "ids"), inputs=inputs, execution=TWO)


def test_files_of_the_sources_may_lie_between_each_other(
    model: Path, texts: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, (id_, text) in enumerate(texts.items()):
        name = f"{number * 77 % 180:03}.{id_.rstrip('0123456789')}.jsonl"
        write(tmp_path / "in" / name, [{"id": id_, "text": text}])
    patterns = tuple(f"{one}={tmp_path}/in/*.{one}.jsonl" for one in ("web", "code"))
    settings = replace(MIXED, token_budget=500)
    encode(InputSettings(patterns=patterns), model, tmp_path / "ids", encoding=settings)
    taken = expected(texts, model, {"web": 350, "code": 150})
    assert {row["id"] for row in rows(tmp_path / "ids")} == {*taken["web"], *taken["code"]}

    def verify(*patterns: str) -> None:
        jobs.verify(directory=str(tmp_path / "ids"), inputs=InputSettings(patterns=patterns))

    verify(f"{tmp_path}/in")
    verify(*patterns)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").rename(tmp_path / "web=in")
    verify("./web=in")  # a directory of this name
    verify("web=web=in/*.web.jsonl", "code=web=in/*.code.jsonl")
    with pytest.raises(
        VerificationError, match="was given as of the source code, and the manifest says web"
    ):
        verify("code=web=in/*.web.jsonl", "web=web=in/*.code.jsonl")


def test_documents_are_held_out_of_those_taken(folder: Path, model: Path, tmp_path: Path) -> None:
    settings = replace(MIXED, token_budget=900)
    encode(named(folder), model, tmp_path / "all", encoding=settings)
    ids = tmp_path / "ids"
    encode(named(folder), model, ids, encoding=replace(settings, validation=0.25, shuffle=3))
    taken = {row["id"] for row in rows(tmp_path / "all")}
    held = {id_ for id_ in taken if is_held_out(id_)}
    assert {row["id"] for row in rows(ids, "validation")} == held
    assert {row["id"] for row in rows(ids)} == taken - held


def test_of_equal_texts_the_first_are_taken(model: Path, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write(tmp_path / "web" / f"{name}.jsonl", [{"text": "low"}, {"text": ""}] * 20)
    write(tmp_path / "code" / "a.jsonl", [{"text": "low"}] * 30)
    size = len(bpe.Tokenizer.load(model).encode("low"))
    settings = EncodeSettings(mix=("web=50%", "code=50%"), token_budget=2 * 25 * size - 1)
    encode(named(tmp_path, split_size=200), model, tmp_path / "ids", encoding=settings)
    found = [row["id"].split(":")[0] for row in rows(tmp_path / "ids") if row["num_tokens"]]
    assert found == ["web/a.jsonl"] * 20 + ["web/b.jsonl"] * 5 + ["code/a.jsonl"] * 25
    jobs.verify(directory=str(tmp_path / "ids"), inputs=plain(tmp_path, split_size=200))


def begin(folder: Path, model: Path, directory: Path, encoding: EncodeSettings) -> EncodeRequest:
    return EncodeRequest.of(
        inputs=named(folder),
        tokenizer=str(model),
        output=OutputSettings(directory=str(directory)),
        encoding=encoding,
    ).started()


def last_is_empty(texts: dict[str, str]) -> int:
    """A seed by which the last document of web has no text."""
    web = [id_ for id_ in texts if id_.startswith("web")]
    return next(seed for seed in range(999) if not texts[max(web, key=lambda i: key(i, seed))])


@pytest.mark.parametrize("shuffle", [None, 3])
def test_a_source_of_which_all_is_asked_for_is_taken_entirely(
    folder: Path, model: Path, texts: dict[str, str], tmp_path: Path, shuffle: int | None
) -> None:
    settings = EncodeSettings(
        mix=("web=60%", "code=40%"), mix_seed=last_is_empty(texts), shuffle=shuffle
    )
    summary = encode(named(folder), model, tmp_path / "ids", encoding=settings)
    assert summary.mix is not None
    web, code = summary.mix.sources
    assert (web.asked, web.documents) == (web.available_tokens, 120)
    assert code.documents < 60
    assert sum(row["id"].startswith("web") for row in rows(tmp_path / "ids")) == 120
    jobs.verify(directory=str(tmp_path / "ids"), inputs=plain(folder))


@pytest.mark.parametrize("budget", [1100, None])
@pytest.mark.parametrize(("run_bytes", "held_bytes"), [(1, 1 << 20), (1 << 20, 1), (500, 40)])
def test_less_memory_chooses_the_same(
    folder: Path, model: Path, tmp_path: Path, run_bytes: int, held_bytes: int, budget: int | None
) -> None:
    def chosen(directory: Path, run_bytes: int, held_bytes: int) -> Any:
        request = begin(folder, model, directory, replace(MIXED, token_budget=budget))
        splits = begun(request)
        job, tokenizer = job_of(request), request.load()
        measured = [
            measure_split(split, job, tokenizer, Failures(), run_bytes=run_bytes)
            for split in reversed(splits)
        ]
        return choose(measured, job, held_bytes=held_bytes)

    wide = chosen(tmp_path / "wide", 1 << 26, 1 << 28)
    assert chosen(tmp_path / "ids", run_bytes, held_bytes) == wide


def test_bad_records_are_set_aside_once(model: Path, tmp_path: Path) -> None:
    write(tmp_path / "web" / "a.jsonl", [{"id": f"w{i}", "text": sentence(i)} for i in range(40)])
    write(tmp_path / "code" / "b.jsonl", [{"id": f"c{i}", "text": sentence(i)} for i in range(40)])
    path = tmp_path / "code" / "b.jsonl"
    path.write_text(path.read_text() + '{"text": 1}\n{\n')
    settings = replace(MIXED, token_budget=500)
    ids = tmp_path / "ids"
    summary = encode(named(tmp_path, max_failures=2), model, ids, encoding=settings)
    assert summary.failures == 2
    letters = b"".join(path.read_bytes() for path in ids.glob("dead-letters/*"))
    assert letters.count(b"\n") == 2
    assert jobs.verify(directory=str(ids), inputs=plain(tmp_path)).failures == 2
    with pytest.raises(RecordError, match="bad records that `max_failures` allows"):
        encode(named(tmp_path, max_failures=1), model, tmp_path / "few", encoding=settings)
    assert not list((tmp_path / "few").glob("dead-letters/*"))  # it failed as it measured


def test_a_finished_job_is_only_looked_at(folder: Path, model: Path, tmp_path: Path) -> None:
    ids, settings = tmp_path / "ids", replace(MIXED, token_budget=900)
    summary = encode(named(folder), model, ids, encoding=settings)
    before = tree(ids)
    stamps = {path: path.stat().st_mtime_ns for path in ids.glob("data/*")}
    again = encode(named(folder), model, ids, encoding=settings, resume=True)
    assert again.resumed_parts == summary.parts
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    next(iter(stamps)).unlink()
    again = encode(named(folder), model, ids, encoding=settings, resume=True)
    assert again.resumed_parts == summary.parts - 1
    assert tree(ids) == before
    for change, said in (
        ({"token_budget": 901}, "settings token_budget was 900, is 901"),
        ({"mix": ("web=60%", "code=40%")}, "settings mix was"),
        ({"mix_seed": 1}, "settings mix_seed was the default, is 1"),
    ):
        other = replace(settings, **change)
        with pytest.raises(OutputError, match=said):
            encode(named(folder), model, ids, encoding=other, resume=True)


def test_an_input_that_changed_is_measured_again(model: Path, tmp_path: Path) -> None:
    write(tmp_path / "web" / "a.jsonl", [{"id": f"w{i}", "text": sentence(i)} for i in range(60)])
    write(tmp_path / "code" / "b.jsonl", [{"id": f"c{i}", "text": sentence(i)} for i in range(60)])
    settings = replace(MIXED, token_budget=900)
    encode(named(tmp_path), model, tmp_path / "ids", encoding=settings)
    path = tmp_path / "web" / "a.jsonl"
    path.write_text(path.read_text().replace("quick", "QUICK"))
    encode(named(tmp_path), model, tmp_path / "new", encoding=settings)
    encode(named(tmp_path), model, tmp_path / "ids", encoding=settings, resume=True)
    assert tree(tmp_path / "ids") == tree(tmp_path / "new")


def test_an_input_that_is_gone_for_the_second_pass_ends_the_job(
    folder: Path, model: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path / "in")
    inputs = named(tmp_path / "in", max_failures=9)
    request = begin(tmp_path / "in", model, tmp_path / "ids", MIXED)
    request = replace(request, inputs=replace(request.inputs, max_failures=9))
    for split in begun(request):
        measure_split(split, job_of(request), request.load(), Failures())
    path, away = tmp_path / "in" / "web" / "c.jsonl", tmp_path / "c.jsonl"
    path.rename(away)
    with pytest.raises(InputError, match=r"c\.jsonl.* is gone now: .*with `resume`"):
        run(lambda p, failures: p | PlannedTransform(request, failures), execution=ONE, pieces=1)
    away.rename(path)
    encode(inputs, model, tmp_path / "ids", encoding=MIXED, resume=True)
    assert not (tmp_path / "ids" / TIMINGS).exists()  # what was measured was kept
    encode(inputs, model, tmp_path / "new", encoding=MIXED)
    assert (tmp_path / "new" / TIMINGS).exists()
    assert tree(tmp_path / "ids") == tree(tmp_path / "new")


SCRIPT = """
import sys
from pathlib import Path
from pipelines.settings import EncodeSettings, InputSettings
from tests.pipelines.corpora import TWO, encode

patterns = (f"web={sys.argv[1]}/web", f"code={sys.argv[1]}/code")
inputs = InputSettings(patterns=patterns, split_size=8000)
settings = EncodeSettings(mix=("web=50%", "code=50%"), token_budget=30_000, pack=64)
encode(inputs, Path(sys.argv[2]), Path(sys.argv[3]), encoding=settings, execution=TWO, resume=True)
"""


def test_what_was_measured_is_not_measured_again(folder: Path, model: Path, tmp_path: Path) -> None:
    settings = replace(MIXED, token_budget=1100)
    request = begin(folder, model, tmp_path / "ids", settings)
    splits, job, tokenizer = begun(request), job_of(request), request.load()
    for split in splits[:-1]:
        measure_split(split, job, tokenizer, Failures())
    paths = sorted((tmp_path / "ids" / MIX).glob("part-*"))
    assert len(paths) == len(splits) - 1 > 3
    damaged = bytearray(paths[0].read_bytes())
    damaged[len(damaged) // 3] ^= 1
    paths[0].write_bytes(damaged)
    found = [finished_measure(split, job) for split in splits]
    assert [one is None for one in found] == [True, *[False] * (len(splits) - 2), True]
    with pytest.raises(OutputError, match="is not finished: repeat its command with `resume`"):
        encode(named(folder), model, tmp_path / "ids", encoding=settings)
    encode(named(folder), model, tmp_path / "ids", encoding=settings, resume=True)
    encode(named(folder), model, tmp_path / "new", encoding=settings)
    assert tree(tmp_path / "ids") == tree(tmp_path / "new")


@pytest.mark.parametrize("shuffle", [None, 3])
def test_after_a_budget_too_large_nothing_is_measured_again(
    folder: Path, model: Path, tmp_path: Path, shuffle: int | None
) -> None:
    ids, settings = tmp_path / "ids", replace(MIXED, token_budget=10**9, shuffle=shuffle)
    with pytest.raises(InputError, match="`resume` keeps what was counted"):
        encode(named(folder), model, ids, encoding=settings)
    with pytest.raises(OutputError, match="settings mix_seed was the default, is 1"):
        encode(named(folder), model, ids, encoding=replace(settings, mix_seed=1), resume=True)
    settings = replace(settings, token_budget=900, mix=("web=60%", "code=40%"))
    encode(named(folder), model, ids, encoding=settings, resume=True)
    assert not (ids / TIMINGS).exists()  # what was measured was kept
    encode(named(folder), model, tmp_path / "new", encoding=settings)
    assert tree(ids) == tree(tmp_path / "new")


def test_what_a_killed_job_measured_is_removed(folder: Path, model: Path, tmp_path: Path) -> None:
    request = begin(folder, model, tmp_path / "ids", MIXED)
    splits, job, tokenizer = begun(request), job_of(request), request.load()
    write_chosen(
        choose([measure_split(one, job, tokenizer, Failures()) for one in splits], job), job
    )
    assert {path.name for path in (tmp_path / "ids" / MIX).iterdir()} > {"chosen.json"}
    encode(plain(folder), model, tmp_path / "ids", overwrite=True)
    assert not (tmp_path / "ids" / MIX).exists()


@pytest.mark.long
def test_a_job_that_was_killed_goes_on(model: Path, tmp_path: Path) -> None:
    for name in ("web", "code"):
        records = [{"id": f"{name}{i}", "text": sentence(i, 60)} for i in range(500)]
        write(tmp_path / "in" / name / "a.jsonl", records)
    arguments, out = [tmp_path / "in", model], tmp_path / "killed"
    assert not run_until(SCRIPT, arguments, tmp_path / "undisturbed", "*", 10**6)
    killed = [
        run_until(SCRIPT, arguments, out, pattern, files)
        for pattern, files in ((f"{MIX}/part-*.arrow", 3), ("data/*.parquet", 5))
    ]
    assert any(killed)
    assert not run_until(SCRIPT, arguments, out, "*", 10**6)
    assert tree(out) == tree(tmp_path / "undisturbed")
    assert not (out / MIX).exists()


def test_what_is_not_the_mix_is_found(folder: Path, model: Path, tmp_path: Path) -> None:
    ids = tmp_path / "ids"
    encode(named(folder), model, ids, encoding=replace(MIXED, token_budget=900))
    value = json.loads((ids / "manifest.json").read_bytes())
    mix = value["mix"]

    def with_source(**changes: Any) -> dict[str, Any]:
        return {**mix, "sources": [{**mix["sources"][0], **changes}, mix["sources"][1]]}

    for changed, said in (
        (with_source(last_place=1 << 40), "from other inputs or with other settings"),
        (with_source(tokens=mix["sources"][0]["tokens"] + 1), "contradicts itself: the mix takes"),
        (with_source(asked=1), "asks of each source is not its share of the budget"),
        ({**mix, "budget": 901}, "asks of each source is not its share of the budget"),
    ):
        (ids / "manifest.json").write_bytes(manifest_bytes({**value, "mix": changed}))
        with pytest.raises(VerificationError, match=said):
            jobs.verify(directory=str(ids))
    for other, said in (
        (with_source(inputs=[[0, 1]]), "sources of its mix do not divide its inputs"),
        (None, "its rows and its mix contradict each other"),
    ):
        (ids / "manifest.json").write_bytes(manifest_bytes({**value, "mix": other}))
        with pytest.raises(InputError, match=said):
            jobs.verify(directory=str(ids))


@pytest.mark.parametrize("shuffle", [None, 3])
def test_a_mix_that_takes_too_much_is_found(
    folder: Path, model: Path, tmp_path: Path, shuffle: int | None
) -> None:
    """Parts and manifest agree, and have more than was asked for."""
    ids = tmp_path / "ids"
    encode(named(folder), model, ids, encoding=replace(MIXED, shuffle=shuffle))
    jobs.verify(directory=str(ids), inputs=plain(folder))
    value = json.loads((ids / "manifest.json").read_bytes())
    value["mix"]["budget"] = 900
    for source, asked in zip(value["mix"]["sources"], (630, 270), strict=True):
        source["asked"] = asked
    (ids / "manifest.json").write_bytes(manifest_bytes(value))
    jobs.verify(directory=str(ids))
    with pytest.raises(VerificationError, match="web of the mix: 630 tokens are not reached with"):
        jobs.verify(directory=str(ids), inputs=plain(folder))


def test_in_a_pipeline_of_ones_own_it_is_the_same(
    folder: Path, model: Path, tmp_path: Path
) -> None:
    encode(named(folder), model, tmp_path / "ids", encoding=replace(MIXED, token_budget=900))
    with pipeline() as p:
        _ = p | EncodeCorpus(
            inputs=named(folder).patterns,
            split_size=1500,
            tokenizer=str(model),
            output=str(tmp_path / "own"),
            mix=["web=70%", "code=30%"],
            token_budget=900,
            append_token=END,
        )
    assert tree(tmp_path / "own") == tree(tmp_path / "ids")


def test_in_a_store_it_is_the_same(folder: Path, model: Path, tmp_path: Path) -> None:
    store, objects = "store://bucket", ObjectStore.objects
    for path in folder.glob("*/*.jsonl"):
        objects[f"{store}/{path.relative_to(folder)}"] = path.read_bytes()
    objects[f"{store}/tokenizer.json"] = model.read_bytes()
    inputs = InputSettings(patterns=(f"web={store}/web", f"code={store}/code"), split_size=1500)
    settings = replace(MIXED, token_budget=900)
    try:
        jobs.encode(
            inputs=inputs,
            tokenizer=f"{store}/tokenizer.json",
            output=OutputSettings(directory=f"{store}/out"),
            encoding=settings,
            execution=TWO,
        )
        found = ObjectStore.tree(f"{store}/out")
    finally:
        objects.clear()
    encode(named(folder), model, tmp_path / "ids", encoding=settings)
    expected = tree(tmp_path / "ids")
    parts = [name for name in expected if name.startswith("data/")]
    assert {name: found[name] for name in parts} == {name: expected[name] for name in parts}
    assert not [name for name in found if MIX in name]


@pytest.mark.parametrize(
    ("patterns", "changes", "error", "reason"),
    [
        (("web={}/web", "code={}/code"), {"token_budget": 10**9}, InputError, "use [0-9,]+ or"),
        (("web={}/web", "code={}/none"), {}, InputError, "code of the mix has 0 tokens, too few"),
        (("web={}/web", "{}/code"), {}, ConfigError, "is of no source of the mix: write NAME="),
        (("web={}/web",), {}, ConfigError, "`mix` code has no files: give `input` code=PATTERN"),
        (("web={}", "code={}/code"), {}, InputError, "is of two sources, web and code"),
    ],
)
def test_what_cannot_be_mixed_is_refused(
    folder: Path,
    model: Path,
    tmp_path: Path,
    patterns: tuple[str, ...],
    changes: dict[str, Any],
    error: type[Exception],
    reason: str,
) -> None:
    write(tmp_path / "in" / "none" / "a.jsonl", [{"text": ""}])
    for name in ("web", "code"):
        (tmp_path / "in" / name).symlink_to(folder / name)
    root = tmp_path / "in" if "none" in str(patterns) else folder
    inputs = InputSettings(patterns=tuple(one.format(root) for one in patterns))
    encoding = replace(MIXED, append_token=None, **changes)
    with pytest.raises(error, match=reason):
        encode(inputs, model, tmp_path / "ids", encoding=encoding)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"mix": ("web=70%", "code=20%")}, "the shares of `mix` add up to 90%, not to 100%"),
        ({"mix": ("web=70%", "web=30%")}, "web is given twice"),
        ({"mix": ("web=50%", "code=49.9999999%")}, r"add up to 99\.9999999%, not to 100%"),
        ({"mix": ("web=1/3", "code=1/2")}, "add up to 5/6, not to 100%"),
        ({"mix": ("web",)}, "write NAME=SHARE, such as"),
        ({"mix": ("web=1/0",)}, "'1/0' is not a share"),
        ({"mix": "web=100%"}, "`mix` is a list of NAME=SHARE"),
        ({"mix": (1,)}, "`mix` is a list of NAME=SHARE"),
        ({"mix": (f"{'x' * 201}=100%",)}, "a name of up to 200 letters"),
        ({"mix": ("web=1", "code=0")}, "`mix` code=0: leave the source out"),
        ({"mix": ("=100%",)}, "write NAME=SHARE, such as web=70%"),
        ({"token_budget": 5}, "`token_budget` goes with `mix` NAME=SHARE"),
        ({"mix_seed": 5}, "`mix_seed` goes with `mix` NAME=SHARE"),
        ({"mix": ("web=1",), "token_budget": 0}, "`token_budget` 0 is out of range"),
    ],
)
def test_what_is_no_mix_is_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        EncodeSettings(**settings)


def test_numbers_of_tokens_as_people_write_them() -> None:
    assert parse_whole("10B") == parse_whole("10 b") == parse_whole("10G") == 10**10
    assert parse_whole("1.5T") == 15 * 10**11
    assert parse_size("2TiB") == 2 << 40
    for text in ("B", "1kB", "1Bi"):
        with pytest.raises(ValueError, match="is not a whole number"):
            parse_whole(text)
    assert pa.scalar(parse_size("10b")).as_py() == 10
