"""Promises of every job.

The same files for any workers, splits and repeated bundles; a job whose output is
damaged, or that is started twice, ends with these files or with one clear error; what is not ours
is never touched.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path, PurePath
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.errors import ConfigError, InputError, OutputError, VerificationError
from pipelines.output.directory import locked
from pipelines.settings import Execution
from pipelines.stage.record import read_records, write_records
from tests import jobs
from tests.contract.kinds import KINDS, VARIANTS, Kind, prepare
from tests.pipelines.corpora import FOUR, ONE, flip, tree
from tests.pipelines.object_store import ObjectStore
from tests.shared_data import long_but

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

EXECUTIONS = {
    "bundles run twice": replace(ONE, beam_args=("--direct_runner_bundle_repeat=2",)),
    "four threads": FOUR,
    "one of many": Execution(workers=1, beam_args=("--direct_running_mode=multi_threading",)),
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The input of the jobs: nobody may change it."""
    path = tmp_path_factory.mktemp("contract")
    prepare(path)
    return path


ALL = KINDS | VARIANTS


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each job."""
    return ALL[request.param]


def of_kinds(kinds: Iterable[str], *short: str) -> pytest.MarkDecorator:
    """Each of these jobs; in the short form, some of them."""
    return pytest.mark.parametrize("kind", long_but(kinds, *short), indirect=True)


def with_kinds(name: str, values: Collection[str], kinds: Iterable[str]) -> pytest.MarkDecorator:
    """Each of these jobs with each value; in the short form, jobs but ``encode`` take turns."""
    cases = [
        (kind, value)
        if kind == "encode" or place == number % len(values)
        else pytest.param(kind, value, marks=pytest.mark.long)
        for (number, kind), (place, value) in product(enumerate(kinds), enumerate(values))
    ]
    return pytest.mark.parametrize(("kind", name), cases, indirect=["kind"])


@pytest.fixture(scope="session")
def outputs(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of each job, by name, that nothing disturbed."""
    path = tmp_path_factory.mktemp("made")
    for name, one in ALL.items():
        one.run(folder, path / name)
    return path


@pytest.fixture(scope="session")
def made(outputs: Path) -> dict[str, dict[str, bytes]]:
    """The undisturbed output of each job."""
    return {name: tree(outputs / name) for name in ALL}


@pytest.fixture
def whole(kind: Kind, made: dict[str, dict[str, bytes]]) -> dict[str, bytes]:
    """The undisturbed output of a job."""
    return made[kind.name]


@pytest.fixture
def output(kind: Kind, outputs: Path, tmp_path: Path) -> Path:
    """The directory of a job that is complete."""
    return shutil.copytree(outputs / kind.name, tmp_path / "out")


def stamps(kind: Kind, output: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in output.glob(kind.parts)}


def edited(path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    value: dict[str, Any] = json.loads(path.read_bytes())
    edit(value)
    path.write_text(json.dumps(value))


def another_total(manifest: dict[str, Any]) -> None:
    manifest["totals" if "totals" in manifest else "training"]["documents"] += 1


def another_path(manifest: dict[str, Any]) -> None:
    for named in manifest.get("parts") or manifest.get("groups") or [manifest["records"]]:
        named["value" if "value" in named else "file"] = "../../elsewhere.parquet"


DAMAGES: dict[str, Callable[[Path], object]] = {
    "flipped": flip,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "empty": lambda path: path.write_bytes(b""),
}
OF_MANIFESTS: dict[str, Callable[[Path], object]] = {
    "another total": lambda path: edited(path, another_total),
    "another path": lambda path: edited(path, another_path),
    "no JSON": lambda path: path.write_bytes(b"{"),
}


@with_kinds("name", EXECUTIONS, ALL)
def test_files_do_not_depend_on_workers_or_bundles(
    kind: Kind, folder: Path, whole: dict[str, bytes], tmp_path: Path, name: str
) -> None:
    kind.run(folder, tmp_path / "out", execution=EXECUTIONS[name])
    found = tree(tmp_path / "out")
    assert found.keys() == whole.keys()
    assert [path for path in found if found[path] != whole[path]] == []


@pytest.mark.parametrize("size", long_but([300, None], 300))
@of_kinds(["count", "train", *VARIANTS], "train", "groups", "superwords")
def test_files_do_not_depend_on_splits(
    kind: Kind, folder: Path, whole: dict[str, bytes], tmp_path: Path, size: int | None
) -> None:
    kind.run(folder, tmp_path / "out", split_size=size)
    found = tree(tmp_path / "out")
    assert found.keys() == whole.keys()
    assert [path for path in found if found[path] != whole[path] and "plan" not in path] == []


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as in `folder`, made again."""
    path = tmp_path_factory.mktemp("far") / "elsewhere"
    prepare(path)
    return path


@of_kinds(ALL, *ALL)
def test_a_complete_job_is_not_made_again(
    kind: Kind, folder: Path, output: Path, whole: dict[str, bytes]
) -> None:
    times = stamps(kind, output)
    with pytest.raises(OutputError, match="complete"):
        kind.run(folder, output)
    assert stamps(kind, output) == times
    kind.run(folder, output, resume=True)
    assert tree(output) == whole
    assert stamps(kind, output) == times or kind.keeps == "nothing"
    kind.run(folder, output, overwrite=True)
    assert tree(output) == whole


@with_kinds("how", ["another one", "missing", "cut", "flipped"], ALL)
def test_what_is_damaged_is_found_and_made_again(
    kind: Kind, folder: Path, output: Path, whole: dict[str, bytes], tmp_path: Path, how: str
) -> None:
    times = stamps(kind, output)
    part = sorted(times)[len(times) // 2]
    if how == "another one":
        others = sorted(times.keys() - {part})
        if not others:
            kind.run(folder, tmp_path / "other", other=True)
            others = [*(tmp_path / "other").glob(kind.parts)]
        shutil.copy(others[0], part)
    else:
        {**DAMAGES, "missing": Path.unlink}[how](part)
    if part.parent.name == "data":
        with pytest.raises((VerificationError, InputError), match=part.name):
            jobs.verify(directory=str(part.parents[1]))
    kind.run(folder, output, resume=True)
    assert tree(output) == whole
    if kind.keeps == "parts":
        assert {**stamps(kind, output), part: 0} == {**times, part: 0}


@with_kinds("how", OF_MANIFESTS | DAMAGES, ["count", "groups", "encode", "export"])
def test_a_damaged_manifest_is_found_and_made_again(
    kind: Kind, folder: Path, output: Path, whole: dict[str, bytes], how: str
) -> None:
    manifest = output / "manifest.json"
    (DAMAGES | OF_MANIFESTS)[how](manifest)
    with pytest.raises((VerificationError, InputError), match=r"manifest\.json"):
        jobs.verify(directory=str(output))
    kind.run(folder, output, resume=True)
    assert tree(output) == whole


@of_kinds(["encode", "export"], "encode")
def test_records_that_the_manifest_does_not_vouch_for_are_not_gone_by(
    kind: Kind, folder: Path, output: Path, whole: dict[str, bytes]
) -> None:
    records = list(read_records(str(output), None))
    write_records(str(output), [replace(one, totals=altered(one.totals)) for one in records])
    kind.run(folder, output, resume=True)
    assert tree(output) == whole


def altered(value: Any) -> Any:
    """Totals, each number one more."""
    if isinstance(value, dict):
        return {name: altered(one) for name, one in value.items()}
    return value + 1 if isinstance(value, int) else value


@of_kinds(ALL, *KINDS)
def test_without_its_last_file_a_job_is_finished(
    kind: Kind, folder: Path, output: Path, whole: dict[str, bytes]
) -> None:
    times = stamps(kind, output)
    (output / kind.last).unlink()
    kind.run(folder, output, resume=True)
    assert tree(output) == whole
    assert stamps(kind, output) == times or not kind.goes_on


@of_kinds(ALL, *KINDS)
def test_other_settings_are_another_job(
    kind: Kind, folder: Path, output: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    with pytest.raises(OutputError, match=f"cannot resume.*{kind.changed}"):
        kind.run(folder, output, other=True, resume=True)
    assert tree(output) == whole
    kind.run(folder, output, other=True, overwrite=True)
    kind.run(folder, tmp_path / "other", other=True)
    assert tree(output) == tree(tmp_path / "other") != whole


def test_what_is_foreign_is_never_touched(
    kind: Kind, folder: Path, output: Path, tmp_path: Path
) -> None:
    (output / "notes.txt").write_text("mine")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "notes.txt").write_text("mine")
    for directory in (output, tmp_path / "foreign"):
        before = tree(directory)
        for choice in ({}, {"overwrite": True}, {"resume": True}):
            with pytest.raises(OutputError, match=r"notes\.txt"):
                kind.run(folder, directory, **choice)
        assert tree(directory) == before


def test_what_cannot_be_done_touches_nothing(
    kind: Kind, folder: Path, output: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    nowhere, unknown = (str(tmp_path / "nowhere"),), replace(ONE, runner="NoSuchRunner")
    with pytest.raises(InputError, match="nowhere"):
        kind.run(folder, output, overwrite=True, inputs=nowhere)
    with pytest.raises(ConfigError, match="NoSuchRunner"):
        kind.run(folder, output, overwrite=True, execution=unknown)
    with pytest.raises((InputError, OutputError), match=str(output)):  # itself
        kind.run(folder, output, overwrite=True, inputs=(str(output),))
    assert tree(output) == whole


def test_one_job_at_a_time(kind: Kind, folder: Path, output: Path, whole: dict[str, bytes]) -> None:
    for choice in ({"overwrite": True}, {"resume": True}):
        with locked(str(output)), pytest.raises(OutputError, match="another job is writing"):
            kind.run(folder, output, **choice)
    assert tree(output) == whole


@pytest.fixture
def store() -> Iterator[str]:
    """A directory in a store, which has no locks."""
    yield "store://contract/out"
    ObjectStore.objects.clear()
    ObjectStore.times.clear()


@of_kinds(KINDS, "train", "retrain", "encode", "export")
def test_a_store_holds_the_same(
    kind: Kind, folder: Path, elsewhere: Path, whole: dict[str, bytes], store: str
) -> None:
    """Wherever the input lies."""
    kind.run(folder, store)
    assert ObjectStore.tree(store) == whole
    with pytest.raises(OutputError, match="complete"):
        kind.run(folder, store)
    parts = sorted(name for name in whole if PurePath(name).match(kind.parts))
    ObjectStore.objects[f"{store}/{parts[0]}"] = b"damaged"
    temporary = f".{PurePath(parts[0]).name}.{'0' * 32}.tmp"
    ObjectStore.objects[f"{store}/{PurePath(parts[0]).with_name(temporary)}"] = b"half"
    kind.run(folder, store, resume=True)
    assert ObjectStore.tree(store) == whole
    for name in ("notes.txt", "data/more.parquet", "folder/notes.txt"):
        ObjectStore.objects[f"{store}/{name}"] = b"mine"
        with pytest.raises(OutputError, match=f"holds '{name.partition('/')[0]}"):
            kind.run(folder, store, overwrite=True)
        assert ObjectStore.objects.pop(f"{store}/{name}") == b"mine"
        assert ObjectStore.tree(store) == whole
    kind.run(elsewhere, store, overwrite=True)
    assert ObjectStore.tree(store) == whole


@pytest.mark.parametrize("choice", long_but(["overwrite", "resume"], "resume"))
@of_kinds([one.name for one in KINDS.values() if one.step], "count", "retrain", "encode")
def test_a_job_whose_directory_another_takes_over_ends(
    kind: Kind,
    folder: Path,
    whole: dict[str, bytes],
    store: str,
    monkeypatch: pytest.MonkeyPatch,
    choice: str,
) -> None:
    step = resolve_name(kind.step)

    def taken_over(*arguments: Any, **named: Any) -> Any:
        patch.undo()
        kind.run(folder, store, **{choice: True})
        return step(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(kind.step, taken_over)
        with pytest.raises(OutputError, match="another job has been started there") as error:
            kind.run(folder, store)
    assert error.value.exit_status == 1
    found = ObjectStore.tree(store)  # after its last look, a worker may have written a record
    assert {one: found[one] for one in found if not one.startswith("records/")} == whole
