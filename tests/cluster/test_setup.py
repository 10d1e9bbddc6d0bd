"""Messages about a missing or outdated program that sets clusters up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from tests.cluster.__main__ import cluster

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the only programs that are here, where nothing of a cluster is."""
    for name in ("JAVA_HOME", "BPE_CLUSTER_REQUIRED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("BPE_CLUSTER", str(tmp_path / "cluster"))
    return tmp_path


REMEDIES = (
    "java is missing: a Java runtime of version 11, 17 or 21 (Debian and Ubuntu: apt-get install",
    "mvn is missing: Apache Maven (Debian and Ubuntu: apt-get install maven)",
    "go is missing: Go 1.21 or later (Debian and Ubuntu: apt-get install golang-go; where",
)


def test_missing_tools_are_named_with_the_remedy(tools: Path) -> None:
    done = CliRunner().invoke(cluster, "setup")
    assert done.exit_code == 1
    assert all(remedy in done.output for remedy in REMEDIES)
    assert not (tools / "cluster").exists()


def test_a_tool_that_fails_is_named_with_what_is_needed(tools: Path) -> None:
    for name in ("java", "mvn", "go"):
        (tools / name).write_text("#!/bin/sh\necho too old\nexit 3\n")
        (tools / name).chmod(0o755)
    done = CliRunner().invoke(cluster, "setup")
    assert done.exit_code == 1
    assert "ended with status 3 (it needs Apache Maven" in done.output
    assert done.output.endswith("too old\n")
