"""The list of files that a program reads by itself: INPUT_FILE_LIST, `{"<input>": ["<uri>", ...]}` as JSON.

The system takes no variable longer than 128 KiB, so a long list is in the file only, whose name INPUT_FILE_LIST_FILE
always tells.
"""

from __future__ import annotations

import json
import os
from typing import Dict, Mapping, Tuple

FILE_NAME = "inputFileList.txt"
LONGEST = 100 << 10


def variables(listed: Mapping[str, Tuple[str, ...]], directory: str) -> Dict[str, str]:
    """The variables of a program that starts in `directory`, where the file is written; none without a list.

    Raises:
        OSError: it cannot be written.
    """
    if not listed:
        return {}
    text = json.dumps(listed)
    path = os.path.join(directory, FILE_NAME)
    with open(f"{path}.new", "w", encoding="ascii") as file:
        file.write(text + "\n")
    os.replace(f"{path}.new", path)  # what has the name may be a link into what others share
    found = {"INPUT_FILE_LIST_FILE": path}
    if len(text) <= LONGEST:
        found["INPUT_FILE_LIST"] = text
    return found
