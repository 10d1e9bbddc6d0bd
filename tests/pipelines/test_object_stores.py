"""Object stores: URLs and options, and objects on an S3 server of this machine (moto's)."""

from __future__ import annotations

import contextlib
import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fsspec.implementations.local import LocalFileSystem

import bpe
from pipelines import object_stores, storage
from pipelines.corpus.inputs import find_inputs
from pipelines.errors import ConfigError, InputError, JobError, OutputError
from pipelines.object_stores import StorageOptions
from pipelines.output.state import complete
from pipelines.settings import Execution, InputSettings
from pipelines.tokenizer_files import load_tokenizer
from tests.faults.store import BUCKET, Store, start_store
from tests.pipelines.corpora import encode, small_tokenizer, write_corpus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ODD = ["a #1?x=2&y.txt", "b%20c%2Fd.txt", "é [x]*?.txt", "spaces  two .txt", "東京/+.txt"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with start_store(tmp_path_factory.mktemp("store")) as store:
        yield store


@pytest.fixture
def use() -> Iterator[Callable[[Iterable[str]], None]]:
    """Gives this process storage options, until the test ends."""
    before = object_stores.options()
    yield lambda options: object_stores.use_options(StorageOptions.parse(options))
    object_stores.use_options(before)


@pytest.fixture
def store(server: Store, use: Callable[[Iterable[str]], None]) -> Store:
    """The server, which this process reaches by storage options."""
    use(server.options)
    return server


def test_keys_are_verbatim(store: Store) -> None:
    at = f"s3://{BUCKET}/odd"
    for name in ODD:
        path = storage.join(at, name)
        written = storage.write(path, name.encode())
        assert storage.exists(path)
        assert storage.read(path) == name.encode()
        assert storage.digest(path) == written
    assert store.tree("odd/") == {name: name.encode() for name in ODD}
    files = find_inputs(InputSettings(patterns=(at,), format="lines")).files
    assert [file.name for file in files] == sorted(ODD, key=os.fsencode)
    for file in files:
        (same,) = find_inputs(InputSettings(patterns=(file.path,), format="lines")).files
        assert (same.path, same.size) == (file.path, file.size)
    names = [name for name in ODD if "/" not in name]
    found = {entry.name: (entry.is_file, entry.is_directory) for entry in storage.entries(at)}
    assert found == {**dict.fromkeys(names, (True, False)), "東京": (False, True)}
    for name in ODD:
        storage.remove(storage.join(at, name))
        storage.remove(storage.join(at, name))  # none there is fine
    assert store.tree("odd/") == {}
    assert [entry for entry in storage.entries(at) if entry.is_file] == []


def test_names_that_a_store_cannot_open_are_refused(store: Store) -> None:
    store.client.put_object(Bucket=BUCKET, Key="slashes//a.txt", Body=b"a")
    for path in (f"s3://{BUCKET}/slashes//a.txt", f"s3://{BUCKET}/a/../b.txt"):
        with pytest.raises(ConfigError, match="cannot be opened in a store: rename it"):
            storage.read(path)
    with pytest.raises(ConfigError, match=r"slashes//a\.txt: names with //, .* rename it"):
        find_inputs(InputSettings(patterns=(f"s3://{BUCKET}/slashes",)))


def test_an_object_is_sent_whole_or_not_at_all(store: Store) -> None:
    path = f"s3://{BUCKET}/whole/part"
    data = os.urandom(20 << 20)  # in several requests
    storage.write(path, b"old")
    with contextlib.suppress(ZeroDivisionError), storage.replacing(path) as file:
        file.write(data)
        raise ZeroDivisionError
    assert store.tree("whole/") == {"part": b"old"}
    storage.write(path, data)
    assert store.tree("whole/") == {"part": data}
    assert store.unfinished() == []
    with storage.open_binary(path) as file:
        file.seek(5 << 20)
        assert file.read(1000) == data[5 << 20 : (5 << 20) + 1000]


def test_versions_of_one_second_have_different_tags(store: Store) -> None:
    path = f"s3://{BUCKET}/versions/a"
    storage.write(path, b"one")
    first = storage.file_version(path)
    storage.write(path, b"two")
    second = storage.file_version(path)
    assert first is not None
    assert second is not None
    assert first.tag != second.tag
    assert not first.may_be(second)
    assert storage.file_version(path + "-none") is None
    ((_, _, listed),) = storage.objects_below(f"s3://{BUCKET}/versions")
    assert listed.modified == second.modified


def test_errors_name_the_object_and_what_helps(store: Store) -> None:
    with pytest.raises(OutputError, match=r"s3://no-such/key: cannot write: .*: make the bucket"):
        storage.write("s3://no-such/key", b"x")
    with pytest.raises(InputError, match=f"s3://{BUCKET}/none: cannot read: it does not exist"):
        storage.read(f"s3://{BUCKET}/none")


def test_the_usual_environment_reaches_a_store(
    server: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.client.put_object(Bucket=BUCKET, Key="environment", Body=b"there")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    assert storage.read(f"s3://{BUCKET}/environment") == b"there"


def test_a_forked_process_is_told(store: Store) -> None:
    """A fork, which would wait for threads that it does not have."""
    path = f"s3://{BUCKET}/forked"
    storage.write(path, b"x")
    if (child := os.fork()) == 0:
        try:
            storage.read(path)
        except JobError as error:
            os._exit(7 if "forked" in str(error) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert storage.read(path) == b"x"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(
            ("true", True),
            ("false", False),
            ("False", False),
            ("2.5", 2.5),
            ("60", 60),
            ('"123"', "123"),
        ),
        *(("secret", "secret"), ("http://a:1/x=y", "http://a:1/x=y")),
    ],
)
def test_options_are_text_numbers_and_truth(text: str, value: object) -> None:
    assert repr(StorageOptions.parse([f"s3.key={text}"]).of("s3")) == repr({"key": value})


def test_an_option_is_of_one_store_or_of_all() -> None:
    given = StorageOptions.parse(
        ["region=first", "region=second", "s3.region=here", "gs.scheme=b", "hf.token=secret"]
    )
    assert given.of("s3") == given.of("s3a") == {"region": "here"}
    assert given.of("gs") == {"region": "second", "scheme": "b"}
    assert given.of("hf") == {"token": "secret"}
    assert given.of("memory") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("endpoint_overide=x", "unexpected keyword argument 'endpoint_overide'"),
        ("request_timeout=soon", "s3:// cannot be used with these options: "),
    ],
)
def test_options_that_mean_nothing_are_refused(
    use: Callable[[Iterable[str]], None], text: str, message: str
) -> None:
    use([text])
    with pytest.raises(ConfigError, match=re.escape(message)):
        object_stores.place("s3://bucket/name")


@pytest.mark.parametrize(("version", "is_delayed"), [("18.1.0", False), ("25.0.1", True)])
def test_an_older_pyarrow_gets_no_argument_that_it_lacks(
    version: str, is_delayed: bool, monkeypatch: pytest.MonkeyPatch, use: Callable[..., None]
) -> None:
    use([f"region={version}"])  # options of which no filesystem is made yet
    monkeypatch.setattr("pyarrow.__version__", version)
    monkeypatch.setattr("pyarrow.fs.S3FileSystem", dict)
    made: Any = object_stores.place("s3://bucket/name").filesystem
    assert ("allow_delayed_open" in made) == is_delayed


def test_an_option_is_a_key_with_a_value() -> None:
    with pytest.raises(ConfigError, match="is not KEY=VALUE"):
        StorageOptions.parse(["region"])


def test_options_of_beams_filesystems_are_named_anew(tmp_path: Path) -> None:
    small_tokenizer(tmp_path / "t.json")
    corpus = write_corpus(tmp_path / "in")
    execution = Execution(beam_args=("--s3_endpoint_url=http://here",))
    with pytest.raises(ConfigError, match=r"--s3_endpoint_url: .* `storage_option` KEY=VALUE"):
        encode(corpus.inputs(), tmp_path / "t.json", tmp_path / "out", execution=execution)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("azfs://account/container/a b?.txt", "container/a b?.txt"),
        ("abfs://container@account.dfs.core.windows.net/a/b", "container/a/b"),
        ("abfss://container/a", "container/a"),
    ],
)
def test_urls_of_azure(url: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "account")
    monkeypatch.setenv("AZURE_STORAGE_KEY", "a2V5")
    assert object_stores.place(url).path == path


def test_a_url_of_azure_needs_an_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT", raising=False)
    with pytest.raises(ConfigError, match="account_name=ACCOUNT"):
        object_stores.place("az://container/a")


def test_a_url_of_fsspec_may_name_a_host(use: Callable[[Iterable[str]], None]) -> None:
    use(["webhdfs.user=me"])
    place = object_stores.place("webhdfs://namenode:9870/corpus/a #1?b")
    assert place.path == "/corpus/a #1?b"
    assert place.filesystem.handler.fs.url == "http://namenode:9870/webhdfs/v1"


def test_a_store_that_renames_keeps_no_beginning_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = f"local://{tmp_path}/folder/name"
    storage.write(at, b"old")
    storage.write(at, b"whole")
    assert [one.name for one in (tmp_path / "folder").iterdir()] == ["name"]
    monkeypatch.setattr(LocalFileSystem, "pipe_file", _half)
    with pytest.raises(OutputError, match="cannot write: the disk is full"):
        storage.write(at, b"other")
    assert storage.read(at) == b"whole"


def _half(_: object, path: str, data: bytes) -> None:
    Path(path).write_bytes(data[:2])
    raise OSError("the disk is full")


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_what_is_on_this_machine_is_not_a_store(scheme: str) -> None:
    with pytest.raises(ConfigError, match="is not a store"):
        object_stores.place(f"{scheme}:///corpus")


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "x.tiktoken", "vocab.json", "merges.txt", "x-vocab.json"]
)
def test_a_tokenizer_in_a_store_is_read_with_its_companions(tmp_path: Path, name: str) -> None:
    local = tmp_path / name
    small_tokenizer(tmp_path / "t.json")
    bpe.Tokenizer.load(tmp_path / "t.json").save(local, leave_out=bpe.formats.LEAVE_OUT)
    cut = None if name == "tokenizer.json" else "gpt2"
    expected = bpe.Tokenizer.load(local, pretokenizer=cut)
    (tmp_path / "store").mkdir()
    at = f"local://{tmp_path}/store"
    for path in filter(Path.exists, (local, *bpe.formats.companions(local))):
        storage.write(f"{at}/{path.name}", path.read_bytes())
    assert load_tokenizer(f"{at}/{name}", partial(bpe.Tokenizer.load, pretokenizer=cut)) == expected


def test_half_of_a_pair_in_a_store(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    at = f"local://{tmp_path}/store"
    storage.write(f"{at}/x-merges.txt", b"")
    with pytest.raises(InputError, match=r"x-vocab\.json: cannot read"):
        load_tokenizer(f"{at}/x-merges.txt")


@pytest.mark.parametrize("name", bpe.formats.USUAL_NAMES)
def test_a_directory_of_a_tokenizer_is_known_by_any_usual_name(tmp_path: Path, name: str) -> None:
    assert complete(str(tmp_path)).kind is None
    (tmp_path / name).touch()
    assert complete(str(tmp_path)).kind == "tokenizer"
