"""Proofs that a part is finished."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.stage.record import Record, finished
from tests.pipelines.corpora import Corpus, encode_request, make_units

if TYPE_CHECKING:
    from pathlib import Path


def test_any_flipped_byte_is_found_without_a_manifest(
    corpus: Corpus, model: Path, tmp_path: Path
) -> None:
    request = encode_request(corpus.inputs(), model, tmp_path / "ids")
    request.begin()
    (stage,) = request.stages
    unit = next(iter(stage.units()))
    (made,) = make_units(stage, 1)

    def found(fingerprint: str = unit.fingerprint) -> Record | None:
        return finished(request.directory, unit.name, fingerprint=fingerprint)

    assert found() == made
    assert found("another") is None
    record = tmp_path / "ids" / "records" / f"{unit.name}.json"
    for path in (tmp_path / "ids" / made.files[0].file, record):
        good = path.read_bytes()
        for place in range(len(good)):
            damaged = bytearray(good)
            damaged[place] ^= 1 << place % 8
            path.write_bytes(damaged)
            assert found() is None or (path == record and found() == made), place
        for length in (0, 4, 11, len(good) // 2, len(good) - 1):
            path.write_bytes(good[:length])
            assert found() is None, length
        path.write_bytes(good)
    assert found() == made
