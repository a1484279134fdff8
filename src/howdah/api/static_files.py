"""The static files of the page, as the package build made them: sent from the disk, in their compressed form.

The files say nothing of any job, so every caller may read them. The name of a file below `assets/` changes with its
content, so a browser keeps the file forever.
"""

from __future__ import annotations

import functools
import gzip
import os
import re
from pathlib import Path

from howdah.api.http_server import Request, Response

DIRECTORY_VARIABLE = "HOWDAH_PAGE"
"""Names the directory of the files if it is not beside this module: in a cluster only the master has it."""
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; media-src 'self'; font-src 'self'; connect-src 'self'; frame-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
KEEP_FOREVER, ASK_EACH_TIME = "public, max-age=31536000, immutable", "no-cache"
NOT_BUILT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>howdah</title>
<p>The page is not built here: run <code>tools/frontend</code> in the source tree, or install a wheel.</p>
<p lang="zh">这里没有构建页面：请在源码目录运行 <code>tools/frontend</code>，或安装 wheel。</p></html>
""".encode()
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".json": "application/json",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}
_NAME = re.compile(r"(assets/)?[A-Za-z0-9_-][A-Za-z0-9._-]*")


def directory() -> Path:
    """Return the directory of the built files."""
    return Path(os.environ.get(DIRECTORY_VARIABLE) or Path(__file__).parent / "static")


def answer(request: Request) -> Response:
    """Answer with a file of the page; with the page itself at `/`."""
    name = request.path.lstrip("/") or "index.html"
    if not _NAME.fullmatch(name):
        return _not_found(name)
    plain = directory() / name
    packed = plain.with_name(f"{plain.name}.gz")
    headers = {**PAGE_HEADERS, "Cache-Control": KEEP_FOREVER if name.startswith("assets/") else ASK_EACH_TIME}
    kind = _TYPES.get(plain.suffix, "application/octet-stream")
    if packed.is_file():
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(200, b"", kind, {**headers, "Content-Encoding": "gzip"}, packed)
        return Response(200, _decompressed_file(packed, packed.stat().st_mtime_ns), kind, headers)
    if plain.is_file():
        return Response(200, b"", kind, headers, plain)
    if name == "index.html":
        return Response(200, NOT_BUILT, _TYPES[".html"], headers)
    return _not_found(name)


@functools.lru_cache(maxsize=32)
def _decompressed_file(path: Path, _modified_ns: int) -> bytes:
    """Return the content of a compressed file. It is cached, because any caller may request it again and again."""
    return gzip.decompress(path.read_bytes())


def _not_found(name: str) -> Response:
    return Response(404, f"there is no {name[:80]} here\n".encode(), "text/plain; charset=utf-8", PAGE_HEADERS)
