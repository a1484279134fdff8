"""Lists the files that a program reads by itself, as JSON in INPUT_FILE_LIST: `{"<input>": ["<uri>", ...]}`.

The system takes no variable longer than 128 KiB, so a long list is in the file only, which INPUT_FILE_LIST_FILE always
names. Files in S3 are listed a second time as URLs in S3_INPUT_FILE_LIST, as HBox's programs expect them.
"""

from __future__ import annotations

import json
import os
import urllib.parse
from typing import Dict, Mapping, Sequence

FILE_NAME, S3_FILE_NAME = "inputFileList.txt", "s3InputFileList.txt"
MAX_LIST_BYTES = 100 << 10
_S3 = ("s3://", "s3a://", "s3n://")
_AMAZON = "https://s3.amazonaws.com"


def variables(listed: Mapping[str, Sequence[str]], directory: str, endpoint: str = "") -> Dict[str, str]:
    """Write the files to the program's `directory`, and return its variables; none without a list.

    `endpoint` is the URL of the S3 server; empty means Amazon's.

    Raises:
        OSError: a file cannot be written.
    """
    if not listed:
        return {}
    found = _write_list(listed, "INPUT_FILE_LIST", os.path.join(directory, FILE_NAME))
    in_s3 = {name: [uri for uri in uris if uri.startswith(_S3)] for name, uris in listed.items()}
    urls = {name: [_url(uri, endpoint or _AMAZON) for uri in uris] for name, uris in in_s3.items() if uris}
    if urls:
        found.update(_write_list(urls, "S3_INPUT_FILE_LIST", os.path.join(directory, S3_FILE_NAME)))
    return found


def _write_list(listed: Mapping[str, Sequence[str]], name: str, path: str) -> Dict[str, str]:
    text = json.dumps(listed)
    with open(f"{path}.new", "w", encoding="ascii") as file:
        file.write(text + "\n")
    os.replace(f"{path}.new", path)  # the old file may be a link into a shared cache
    found = {f"{name}_FILE": path}
    if len(text) <= MAX_LIST_BYTES:
        found[name] = text
    return found


def _url(uri: str, endpoint: str) -> str:
    bucket, _, key = uri.partition("://")[2].partition("/")
    return f"{endpoint.rstrip('/')}/{bucket}/{urllib.parse.quote(key)}"
