"""A watch takes files in its own process: another runner is refused before anything is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.errors import ConfigError
from pipelines.settings import (
    EncodeSettings,
    Execution,
    InputSettings,
    OutputSettings,
    PretokenSettings,
)
from pipelines.watch.job import watch_count, watch_encode
from tests.pipelines.corpora import small_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

AWAY = Execution(
    runner="PortableRunner",
    beam_args=("--job_endpoint=cluster.invalid:8099", "--environment_type=DOCKER"),
)
REFUSED = r"`runner` PortableRunner: a watch takes files in this process: .*docs/beam\.md"


def test_another_runner_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    small_tokenizer(tmp_path / "tokenizer.json")
    inputs = InputSettings(patterns=(str(tmp_path / "in"),))
    output = OutputSettings(directory=str(tmp_path / "out"))
    with pytest.raises(ConfigError, match=REFUSED):
        watch_count(inputs=inputs, pretokens=PretokenSettings(), output=output, execution=AWAY)
    with pytest.raises(ConfigError, match=REFUSED):
        watch_encode(
            inputs=inputs,
            tokenizer=str(tmp_path / "tokenizer.json"),
            output=output,
            execution=AWAY,
            encoding=EncodeSettings(),
        )
    assert not (tmp_path / "out").exists()
