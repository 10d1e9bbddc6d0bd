"""A loop that appends, killed twice while files arrive, compared with a job over all of them."""

from __future__ import annotations

import io
import json
import random
import signal
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.settings import CountsInput, EncodeSettings, InputSettings
from tests import jobs
from tests.append.drops import (
    FAST,
    MANY,
    SETTLE,
    WAIT,
    Dropping,
    running,
    taken,
    taken_names,
    wait_for,
)
from tests.cli.process import bpe
from tests.pipelines.corpora import encode, small_tokenizer, train

if TYPE_CHECKING:
    from pathlib import Path

    from tests.append.drops import Drops


@dataclass(frozen=True)
class Batch:
    """Files, and the folder in which jobs over all of them have run.

    Attributes:
        drops: the files.
        folder: holds ``tokenizer.json``, ``ids`` (encoded) and ``model`` (trained, ``counts``).
    """

    drops: Drops
    folder: Path

    @classmethod
    def of(cls, drops: Drops, folder: Path) -> Batch:
        (folder / "in").mkdir()
        for name, data in drops.contents.items():
            (folder / "in" / name).write_bytes(data)
        small_tokenizer(folder / "tokenizer.json")
        inputs = InputSettings(patterns=(str(folder / "in"),), max_failures=1000)
        keep = EncodeSettings(keep=("n:int64",))
        encode(inputs, folder / "tokenizer.json", folder / "ids", encoding=keep)
        train(folder / "model", inputs=inputs)
        return cls(drops, folder)

    def check_encoding(self, folder: Path, *, seconds: float) -> None:
        """Append the files while they arrive; what comes out is what the batch made."""
        command = (
            *("encode", "--input", "in/*", "--tokenizer", str(self.folder / "tokenizer.json")),
            *("--output", "out", "--keep", "n:int64", *MANY),
        )
        summary = self._watch(folder, command, seconds)
        out, batch = folder / "out", self.folder / "ids"
        assert summary["failures"] == self.drops.bad
        assert table(out).equals(table(batch))
        assert table(out)["id"].to_pylist() == sorted(self.drops.texts)
        assert dead_letters(out) == dead_letters(batch)
        own, of_batch = (json.loads((path / "manifest.json").read_text()) for path in (out, batch))
        assert {**own["totals"], "bytes": 0} == {**of_batch["totals"], "bytes": 0}
        assert sorted_inputs(own) == sorted_inputs(of_batch)
        verify(folder)
        stream = io.BytesIO()
        jobs.decode(directory=str(out), stream=stream)
        decoded = map(json.loads, stream.getvalue().splitlines())
        assert {one["id"]: one["text"] for one in decoded} == self.drops.texts

    def check_counting(self, folder: Path, *, seconds: float) -> None:
        """Append their counts while they arrive; the tokenizer is that of the batch."""
        command = ("count", "--input", "in/*", "--output", "out", *MANY)
        summary = self._watch(folder, command, seconds)
        assert summary["documents"] == len(self.drops.documents)
        assert summary["failures"] == self.drops.bad
        train(folder / "model", counts=(CountsInput(directory=str(folder / "out")),))
        for name in ("tokenizer.json", "training.json"):
            own, batch = (path / "model" / name for path in (folder, self.folder))
            assert own.read_bytes() == batch.read_bytes()
        verify(folder)
        counts = self.folder / "model" / "counts"
        assert dead_letters(folder / "out") == dead_letters(counts)

    def _watch(self, folder: Path, command: tuple[str, ...], seconds: float) -> dict[str, Any]:
        """Append while files are dropped, be killed twice, and start again; the last summary."""
        dice = random.Random(5)
        files = self.drops.contents.keys()
        out = folder / "out"
        with Dropping(
            self.drops.contents, folder / "in", seconds=seconds, settle=SETTLE
        ) as dropping:
            for portion, share in ((1, 0.2), (2, 0.6)):
                with running(*command, *FAST, cwd=folder) as process:
                    wait_for(partial(_has_taken, out, share * len(files)), process)
                    time.sleep(dice.random() * 0.5)
                    missing, found = dropping.missing(), set(taken_names(out))
                    process.send_signal(signal.SIGKILL)
                assert len(missing) > 2, "files are still to come"
                assert len(found) < len(files) - 2
                half, growing = dropping.held
                assert half in missing
                assert half not in found
                assert growing not in found or not dropping.grew()
                dropping.go_on(portion)
        done = bpe(*command, "--append", "--prune", "--json", cwd=folder, seconds=WAIT)
        summary = json.loads(done.stdout)
        return dict(summary)


def verify(folder: Path) -> None:
    inputs = InputSettings(patterns=(str(folder / "in" / "*"),))
    jobs.verify(directory=str(folder / "out"), inputs=inputs)


def sorted_inputs(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """The inputs as a manifest describes them."""
    return sorted(manifest["inputs"], key=lambda one: str(one["name"]))


def _has_taken(output: Path, files: float) -> bool:
    return taken(output) >= files


def table(folder: Path) -> pa.Table:
    """All rows of an encoded corpus, in the order of their ids; no document is there twice."""
    rows = pa.concat_tables([pq.read_table(path) for path in folder.glob("data/train-*.parquet")])
    rows = rows.replace_schema_metadata().combine_chunks().sort_by("id")
    assert len(pc.unique(rows["id"])) == len(rows), "a document is there twice"
    return rows


def dead_letters(folder: Path) -> list[dict[str, Any]]:
    """All bad records, in the order of their files."""
    lines = [
        line for path in folder.glob("dead-letters/*") for line in path.read_text().splitlines()
    ]
    return sorted(map(json.loads, lines), key=lambda one: (one["file"], one["place"]))
