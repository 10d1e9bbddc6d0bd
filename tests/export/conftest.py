"""Ids of small corpora, each made once a process: nobody may change them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from pipelines.settings import EncodeSettings, InputSettings
from tests.pipelines.corpora import encode, sentence, small_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Ids: TypeAlias = Callable[[str], Path]  # the directory of a corpus, by its name

SPLIT = 400  # bytes: sixteen empty documents
CORPORA: dict[str, list[dict[str, Any]]] = {
    "web": [
        {"id": f"w{i}", "text": sentence(i, i % 17), "lang": f"l{i % 3}", "score": i / 2}
        for i in range(90)
    ],
    "code": [
        {"id": f"c{i}", "text": sentence(i + 300, 3 + i % 29), "lang": "py", "stars": i}
        for i in range(40)
    ],
    # Empty documents at the beginning, between and at the end: more than a unit of work has.
    "edges": [
        {"id": f"e{i}", "text": text}
        for i, text in enumerate(
            [*[""] * 20, *map(sentence, range(6)), *[""] * 20, sentence(9, 60), *[""] * 20]
        )
    ],
    "blank": [{"id": f"b{i}", "text": ""} for i in range(24)],
    "twins": [{"text": sentence(i % 3)} for i in range(40)],  # without an id of their own
}
COLUMNS = {"web": ("lang", "score"), "code": ("lang", "stars")}


@pytest.fixture(scope="session")
def ids(tmp_path_factory: pytest.TempPathFactory) -> Ids:
    """The directory of a corpus, by its name."""
    folder = tmp_path_factory.mktemp("ids")
    small_tokenizer(folder / "tokenizer.json")

    def made(name: str) -> Path:
        if not (folder / name).exists():
            (folder / "in").mkdir(exist_ok=True)
            path = folder / "in" / f"{name}.jsonl"
            path.write_text("".join(json.dumps(one) + "\n" for one in CORPORA[name]), "utf-8")
            encode(
                InputSettings(patterns=(str(path),), split_size=SPLIT),
                folder / "tokenizer.json",
                folder / name,
                encoding=EncodeSettings(keep=COLUMNS.get(name, ())),
            )
        return folder / name

    return made
