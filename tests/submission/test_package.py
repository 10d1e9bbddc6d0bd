"""The wheel that the docs tell people to build for workers."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from bpe import presets
from tests.cli.process import ROOT, execute
from tests.cluster.package import built_wheel


@pytest.mark.long
def test_a_wheel_holds_what_workers_need(tmp_path: Path) -> None:
    wheel = built_wheel(tmp_path)
    assert wheel.name.startswith(f"beam_bpe-0.1.0-cp{sys.version_info[0]}{sys.version_info[1]}-")
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        for file in (
            "pipelines/encode/job.py",
            "pipelines/report/templates/page.html",
            *(f"bpe/presets/{name}.yaml" for name in presets.names()),
        ):
            assert archive.read(file) == (ROOT / file).read_bytes()
        archive.extractall(tmp_path / "installed")
    # It works without the checkout.
    code = (
        "import bpe, pipelines; from bpe.presets import Preset; assert Preset.load('words').ties; "
        "print(bpe.__file__, bpe.count_pretokens(['a b']).totals.pretokens)"
    )
    installed = tmp_path / "installed"
    found = execute(sys.executable, "-c", code, cwd=installed, PYTHONPATH=str(installed))
    assert found.stdout == f"{installed / 'bpe' / '__init__.py'} 2\n"
    assert Path(found.stdout.split()[0]).is_file()
