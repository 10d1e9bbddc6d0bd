"""A server on this machine that answers as Hugging Face's hub does, for one dataset repository."""

from __future__ import annotations

import http.server
import json
import re
import threading
from contextlib import contextmanager
from hashlib import sha1
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REPOSITORY = "team/corpus"


@contextmanager
def hub(folder: Path) -> Iterator[str]:
    """Serve the files of a folder as `REPOSITORY`; the address is for ``HF_ENDPOINT``."""

    class Handler(_Handler):
        root = folder

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    root: Path

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Say nothing."""

    def do_GET(self) -> None:
        path = unquote(urlparse(self.path).path)
        api, files = f"/api/datasets/{REPOSITORY}", f"/datasets/{REPOSITORY}/resolve/[^/]+/"
        tree = re.fullmatch(f"{api}/tree/[^/]+/?(.*)", path)
        file = re.fullmatch(f"{files}(.*)", path)
        if path == api:
            self._json({"id": REPOSITORY, "sha": "a" * 40, "siblings": []})
        elif tree and (self.root / tree[1]).is_dir():
            self._json([self._entry(one) for one in sorted((self.root / tree[1]).iterdir())])
        elif file and (self.root / file[1]).is_file():
            self._file((self.root / file[1]).read_bytes())
        else:
            code = "EntryNotFound" if tree or file else "RepoNotFound"
            self._send(404, b"{}", {"X-Error-Code": code, "Content-Type": "application/json"})

    do_HEAD = do_GET  # noqa: N815 - the name that the server looks for

    def do_POST(self) -> None:
        """Those of some paths that exist, with their kinds."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        found = [self.root / path for path in body["paths"]]
        self._json([self._entry(one) for one in found if one.exists()])

    def _entry(self, path: Path) -> dict[str, Any]:
        name = path.relative_to(self.root).as_posix()
        if path.is_dir():
            return {"type": "directory", "oid": "b" * 40, "size": 0, "path": name}
        data = path.read_bytes()
        oid = sha1(data, usedforsecurity=False).hexdigest()
        return {"type": "file", "oid": oid, "size": len(data), "path": name}

    def _file(self, data: bytes) -> None:
        headers = {"ETag": '"x"', "X-Repo-Commit": "a" * 40, "Accept-Ranges": "bytes"}
        begin, last = 0, len(data) - 1
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked:
            begin, last = int(asked[1]), min(int(asked[2]), last)
            headers["Content-Range"] = f"bytes {begin}-{last}/{len(data)}"
        self._send(206 if asked else 200, data[begin : last + 1], headers)

    def _json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
