"""A server on this machine that answers as Hugging Face's hub does, for one dataset repository."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from hashlib import sha1
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from tests.pipelines.answers import Answer, answering

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.server import BaseHTTPRequestHandler
    from pathlib import Path

REPOSITORY = "team/corpus"
_API, _FILES = f"/api/datasets/{REPOSITORY}", f"/datasets/{REPOSITORY}/resolve/[^/]+/"
_JSON = {"Content-Type": "application/json"}


@contextmanager
def hub(folder: Path) -> Iterator[str]:
    """Serve the files of a folder as `REPOSITORY`; the address is for ``HF_ENDPOINT``."""

    def entry(path: Path) -> dict[str, Any]:
        name = path.relative_to(folder).as_posix()
        if path.is_dir():
            return {"type": "directory", "oid": "b" * 40, "size": 0, "path": name}
        data = path.read_bytes()
        oid = sha1(data, usedforsecurity=False).hexdigest()
        return {"type": "file", "oid": oid, "size": len(data), "path": name}

    def answer(request: BaseHTTPRequestHandler, body: bytes) -> Answer:
        path = unquote(urlparse(request.path).path)
        tree = re.fullmatch(f"{_API}/tree/[^/]+/?(.*)", path)
        file = re.fullmatch(f"{_FILES}(.*)", path)
        value: Any = None
        if request.command == "POST":  # about some paths
            asked = (folder / one for one in json.loads(body)["paths"])
            value = [entry(one) for one in asked if one.exists()]
        elif path == _API:
            value = {"id": REPOSITORY, "sha": "a" * 40, "siblings": []}
        elif tree and (folder / tree[1]).is_dir():
            value = [entry(one) for one in sorted((folder / tree[1]).iterdir())]
        elif file and (folder / file[1]).is_file():
            return _contents((folder / file[1]).read_bytes(), request.headers.get("Range", ""))
        else:
            code = "EntryNotFound" if tree or file else "RepoNotFound"
            return 404, {"X-Error-Code": code, **_JSON}, b"{}"
        return 200, _JSON, json.dumps(value).encode()

    with answering(answer) as server:
        yield f"http://{server}"


def _contents(data: bytes, asked: str) -> Answer:
    headers = {"ETag": '"x"', "X-Repo-Commit": "a" * 40, "Accept-Ranges": "bytes"}
    if not (places := re.fullmatch(r"bytes=(\d+)-(\d+)", asked)):
        return 200, headers, data
    begin, last = int(places[1]), min(int(places[2]), len(data) - 1)
    headers["Content-Range"] = f"bytes {begin}-{last}/{len(data)}"
    return 206, headers, data[begin : last + 1]
