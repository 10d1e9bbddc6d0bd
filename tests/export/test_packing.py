"""Packed rows: which documents they are of, and what happens to the last one."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpe
from bpe.roles import Roles
from pipelines.errors import RecordError
from pipelines.settings import AddedColumn, EncodeSettings
from tests.cli.process import bpe as command
from tests.examples import examples
from tests.export.exports import Options, export_and_check, export_plainly, rows
from tests.pipelines.corpora import END, encode, sentence, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.settings import ExportSettings
    from tests.export.conftest import Ids


@st.composite
def shapes(draw: Any) -> ExportSettings:
    """Options of packed rows that go together."""
    packing = draw(st.sampled_from(["concatenate", "best-fit"]))
    remainders = ["keep", "pad"] if packing == "best-fit" else ["keep", "drop", "pad"]
    remainder = draw(st.sampled_from(remainders))
    return Options(
        pack=draw(st.integers(1, 7)),
        packing=packing,
        pack_remainder=remainder,
        pad_token=END if remainder == "pad" else None,
        add_column=tuple(draw(st.lists(st.sampled_from(get_args(AddedColumn)), unique=True))),
        shuffle=draw(st.none() | st.integers(0, 99)),
        validation=draw(st.sampled_from([0, 0.5])),
    )


@examples(40)
@given(
    sizes=st.lists(st.integers(0, 9), max_size=14),
    options=shapes() | st.builds(Options, max_tokens=st.integers(1, 5)),
    unit_tokens=st.sampled_from([1, 6, 20, 10**6]),
    split_size=st.sampled_from([60, 200, None]),
)
def test_any_rows(
    ids: Ids,
    tmp_path_factory: pytest.TempPathFactory,
    *,
    sizes: list[int],
    options: ExportSettings,
    unit_tokens: int,
    split_size: int | None,
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    texts = ["".join("zqxjkvwy"[(i + n) % 8] for n in range(size)) for i, size in enumerate(sizes)]
    corpus = write_jsonl(folder / "in" / "docs.jsonl", texts)
    model = ids("web") / "tokenizer.json"
    encode(corpus.inputs(split_size=split_size), model, folder / "ids")
    export_and_check({"ids": folder / "ids"}, folder / "out", options, unit_tokens=unit_tokens)
    if options.pack_remainder != "keep":
        both = rows(folder / "out") + rows(folder / "out", "validation")
        assert {len(row["input_ids"]) for row in both} <= {options.pack}


def test_a_row_names_no_endless_number_of_documents(
    ids: Ids, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.export.rows.MAX_ROW_DOCUMENTS", 20)
    export_plainly({"web": ids("web")}, tmp_path / "few", Options(pack=16))
    with pytest.raises(RecordError, match=r"more than 20 documents.*`append_token`"):
        export_plainly({"edges": ids("edges")}, tmp_path / "many", Options(pack=16))


@pytest.mark.parametrize(
    ("role", "append_token", "arguments", "warned"),
    [
        (END, None, ("--pack", "16"), True),
        (END, None, ("--pack", "32", "--packing", "best-fit"), True),
        (END, None, ("--max-tokens", "16"), False),
        (END, "eos", ("--pack", "16"), False),
        (None, None, ("--pack", "16"), False),
    ],
)
def test_packed_documents_that_nothing_separates_are_warned_of(
    tmp_path: Path,
    role: str | None,
    append_token: str | None,
    arguments: tuple[str, ...],
    warned: bool,
) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", [sentence(i) for i in range(40)])
    trained = bpe.train(bpe.count_pretokens(["the quick"]), vocab_size=300, special_tokens=[END])
    model = tmp_path / "model" / "tokenizer.json"
    model.parent.mkdir()
    trained.with_roles(Roles(eos=role)).save(model)
    encoding = EncodeSettings(append_token=append_token)
    encode(corpus.inputs(), model, tmp_path / "ids", encoding=encoding)
    shutil.copytree(model.parent, tmp_path / "ids", dirs_exist_ok=True)
    done = command("export", "ids", "--to", "bin", "--output", "out", *arguments, cwd=tmp_path)
    assert ("--append-token" in done.stdout) == warned
