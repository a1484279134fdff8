"""The list of files that a program reads by itself: INPUT_FILE_LIST, `{"<input>": ["<uri>", ...]}` as JSON.

The system takes no variable longer than 128 KiB, so a long list is in the file only, whose name INPUT_FILE_LIST_FILE
always tells. What of it lies in S3 is told once more as HBox's programs know it: by URLs, as S3_INPUT_FILE_LIST.
"""

from __future__ import annotations

import json
import os
import urllib.parse
from typing import Dict, Mapping, Sequence

FILE_NAME, S3_FILE_NAME = "inputFileList.txt", "s3InputFileList.txt"
LONGEST = 100 << 10
_S3 = ("s3://", "s3a://", "s3n://")
_AMAZON = "https://s3.amazonaws.com"


def variables(listed: Mapping[str, Sequence[str]], directory: str, endpoint: str = "") -> Dict[str, str]:
    """The variables of a program that starts in `directory`, where the file is written; none without a list.
    `endpoint` is where its buckets are, empty: at Amazon.

    Raises:
        OSError: it cannot be written.
    """
    if not listed:
        return {}
    found = _told(listed, "INPUT_FILE_LIST", os.path.join(directory, FILE_NAME))
    in_s3 = {name: [uri for uri in uris if uri.startswith(_S3)] for name, uris in listed.items()}
    urls = {name: [_url(uri, endpoint or _AMAZON) for uri in uris] for name, uris in in_s3.items() if uris}
    if urls:
        found.update(_told(urls, "S3_INPUT_FILE_LIST", os.path.join(directory, S3_FILE_NAME)))
    return found


def _told(listed: Mapping[str, Sequence[str]], name: str, path: str) -> Dict[str, str]:
    text = json.dumps(listed)
    with open(f"{path}.new", "w", encoding="ascii") as file:
        file.write(text + "\n")
    os.replace(f"{path}.new", path)  # what has the name may be a link into what others share
    found = {f"{name}_FILE": path}
    if len(text) <= LONGEST:
        found[name] = text
    return found


def _url(uri: str, endpoint: str) -> str:
    bucket, _, key = uri.partition("://")[2].partition("/")
    return f"{endpoint.rstrip('/')}/{bucket}/{urllib.parse.quote(key)}"
