"""The page's own scripts as they are, in Chinese, run where what builds the page is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from howdah.web.sentences import FILE

FRONTEND = Path(__file__).parents[2] / "frontend"
COMPILER = FRONTEND / "node_modules" / "typescript"
SCRIPT = """
const fs = require("fs");
const [compiler, source, sentences, name] = process.argv.slice(1);
const options = { compilerOptions: { module: 1, target: 9 } };
const made = require(compiler).transpileModule(fs.readFileSync(source, "utf8"), options);
const beside = { __esModule: true, default: JSON.parse(fs.readFileSync(sentences, "utf8")), language: () => "zh" };
const page = {};
new Function("exports", "require", made.outputText)(page, () => beside);
console.log(JSON.stringify(JSON.parse(fs.readFileSync(0, "utf8")).map((value) => page[name](value))));
"""


def called(script: str, name: str, values: list[Any]) -> list[Any]:
    """What the function of this name in `frontend/src/SCRIPT` gives for each value."""
    node = shutil.which("node")
    if not node or not COMPILER.is_dir():
        pytest.skip("what builds the page is not installed here")
    command = [node, "-e", SCRIPT, str(COMPILER), str(FRONTEND / "src" / script), str(FILE), name]
    done = subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, timeout=60, check=True)
    found: list[Any] = json.loads(done.stdout)
    return found
