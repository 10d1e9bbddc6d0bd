"""An object store in memory, a scheme of fsspec: ``store://bucket/name``."""

from __future__ import annotations

import hashlib
import io
import time
from typing import Any, ClassVar

import fsspec
from fsspec.spec import AbstractFileSystem

from pipelines.output.names import SPLITS, TIMINGS
from tests.pipelines.corpora import without_times

SCHEME = "store://"


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


class ObjectStore(AbstractFileSystem):  # type: ignore[misc]  # fsspec ships no types
    """No folders, no renaming in place, names that hold anything."""

    protocol = "store"
    cachable = False
    objects: ClassVar[dict[str, bytes]] = {}
    times: ClassVar[dict[str, float]] = {}

    def _info(self, url: str) -> dict[str, Any]:
        data = self.objects[url]
        return {
            "name": url.removeprefix(SCHEME),
            "size": len(data),
            "type": "file",
            "tag": hashlib.sha256(data).hexdigest(),
            "mtime": self.times.get(url, 0.0),
        }

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        base = SCHEME + self._strip_protocol(path).rstrip("/") + "/"
        found: dict[str, dict[str, Any]] = {}
        for url in sorted(self.objects):
            if not url.startswith(base):
                continue
            name, slash, _rest = url[len(base) :].partition("/")
            inner = (base + name).removeprefix(SCHEME)
            folder = {"name": inner, "size": 0, "type": "directory"}
            found.setdefault(inner, folder if slash else self._info(url))
        if not found:
            raise FileNotFoundError(path)
        return list(found.values()) if detail else list(found)

    def _open(self, path: str, mode: str = "rb", **_: Any) -> io.BytesIO:
        url = SCHEME + self._strip_protocol(path)
        if "w" in mode:
            return _Upload(url)
        return self.opened(url)

    def opened(self, url: str) -> io.BytesIO:
        if url not in self.objects:
            raise FileNotFoundError(f"no object {url}")
        return io.BytesIO(self.objects[url])

    def rm_file(self, path: str) -> None:
        self.objects.pop(SCHEME + self._strip_protocol(path), None)  # as stores do

    _rm = rm_file

    @classmethod
    def tree(cls, directory: str) -> dict[str, bytes]:
        """Every object below ``directory`` but times, by its name in it."""
        prefix = directory.rstrip("/") + "/"
        return {
            path.removeprefix(prefix): without_times(path, data)
            for path, data in cls.objects.items()
            if path.startswith(prefix) and not path.endswith((TIMINGS, SPLITS))
        }


fsspec.register_implementation("store", ObjectStore, clobber=True)
