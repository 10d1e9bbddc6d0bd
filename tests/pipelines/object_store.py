"""An object store in memory, behind Beam's filesystems: ``store://bucket/name``."""

from __future__ import annotations

import hashlib
import io
import time
from typing import TYPE_CHECKING, Any, ClassVar

from apache_beam.io.filesystem import BeamIOError, FileMetadata, FileSystem

from pipelines.output.names import TIMINGS
from tests.pipelines.corpora import without_times

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Upload(io.BytesIO):
    """An object that is there once it is closed, as in a real store."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def close(self) -> None:
        if not self.closed:
            ObjectStore.times[self._path] = time.time()
            ObjectStore.objects[self._path] = self.getvalue()
        super().close()


class ObjectStore(FileSystem):  # type: ignore[misc]  # Beam ships no types
    """No folders, no renaming in place, names that hold anything."""

    objects: ClassVar[dict[str, bytes]] = {}
    times: ClassVar[dict[str, float]] = {}

    def __init__(self, pipeline_options: Any) -> None:
        if pipeline_options is None:  # as Beam's S3 filesystem
            raise ValueError("Must provide one of client or options")
        super().__init__(pipeline_options)

    @classmethod
    def scheme(cls) -> str:
        return "store"

    def join(self, basepath: str, *paths: str) -> str:
        return "/".join([basepath.rstrip("/"), *paths])

    def split(self, path: str) -> tuple[str, str]:
        head, _, tail = path.rpartition("/")
        return head, tail

    def has_dirs(self) -> bool:
        return False

    def mkdirs(self, path: str) -> None:
        raise BeamIOError("an object store has no folders")

    def _list(self, dir_or_prefix: str) -> Iterator[FileMetadata]:
        for path, data in sorted(self.objects.items()):
            if path.startswith(dir_or_prefix):
                yield FileMetadata(path, len(data), self.times.get(path, 0.0))

    def create(self, path: str, *args: Any, **options: Any) -> _Upload:
        return _Upload(path)

    def open(self, path: str, *args: Any, **options: Any) -> io.BytesIO:
        if path not in self.objects:
            raise BeamIOError(f"no object {path}")
        return io.BytesIO(self.objects[path])

    def copy(self, sources: list[str], destinations: list[str]) -> None:
        for source, destination in zip(sources, destinations, strict=True):
            self.objects[destination] = self.objects[source]

    def rename(self, sources: list[str], destinations: list[str]) -> None:
        self.copy(sources, destinations)
        self.delete(sources)

    def delete(self, paths: list[str]) -> None:
        for path in paths:
            self.objects.pop(path, None)  # as real ones: none there is fine

    def exists(self, path: str) -> bool:
        return path in self.objects

    def size(self, path: str) -> int:
        return len(self.objects[path])

    def last_updated(self, path: str) -> float:
        return self.times.get(path, 0.0)

    def checksum(self, path: str) -> str:
        return hashlib.sha256(self.objects[path]).hexdigest()

    def metadata(self, path: str) -> FileMetadata:
        return FileMetadata(path, self.size(path), self.last_updated(path))

    @classmethod
    def tree(cls, directory: str) -> dict[str, bytes]:
        """Every object below ``directory`` but times, by its name in it."""
        prefix = directory.rstrip("/") + "/"
        return {
            path.removeprefix(prefix): without_times(path, data)
            for path, data in cls.objects.items()
            if path.startswith(prefix) and not path.endswith(f"/{TIMINGS}")
        }
