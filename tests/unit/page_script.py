"""Runs functions of the page's own scripts, in Chinese, where Node.js and the page's packages are installed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

FRONTEND = Path(__file__).parents[2] / "frontend"
CATALOGUE = FRONTEND / "generated" / "zh.json"
COMPILER = FRONTEND / "node_modules" / "typescript"
"""TypeScript's compiler, which takes half a second to load: compiled scripts are kept in its directory, until npm
replaces that."""
SCRIPT = """
const crypto = require("crypto");
const fs = require("fs");
const path = require("path");
const [compiler, source, catalogue, name] = process.argv.slice(1);
const options = { compilerOptions: { module: 1, target: 9 } };
const table = JSON.parse(fs.readFileSync(catalogue, "utf8"));
const translate = (text) => table[text] ?? text;
const imported = { __esModule: true, default: table, currentLanguage: () => "zh", t: translate };
const compile = (file) => {
  const text = fs.readFileSync(file, "utf8");
  const kept = path.join(compiler, ".howdah-scripts", crypto.createHash("sha256").update(text).digest("hex"));
  if (fs.existsSync(kept)) return fs.readFileSync(kept, "utf8");
  const { outputText } = require(compiler).transpileModule(text, options);
  fs.mkdirSync(path.dirname(kept), { recursive: true });
  fs.writeFileSync(`${kept}.${process.pid}`, outputText);
  fs.renameSync(`${kept}.${process.pid}`, kept);
  return outputText;
};
const load = (file) => {
  const exported = {};
  const beside = (other) => path.join(path.dirname(file), other + ".ts");
  const find = (other) => (other.startsWith("./") && fs.existsSync(beside(other)) ? load(beside(other)) : imported);
  new Function("exports", "require", compile(file))(exported, find);
  return exported;
};
const page = load(source);
const call = (value) => page[name](...(Array.isArray(value) ? value : [value]));
const revive = (_, value) => (value?.map_of ? new Map(value.map_of) : value);
console.log(JSON.stringify(JSON.parse(fs.readFileSync(0, "utf8"), revive).map(call)));
"""


def called(script: str, name: str, values: list[Any]) -> list[Any]:
    """Return what the function `name` of `frontend/src/SCRIPT` returns for each value; a list holds its arguments,
    and `{"map_of": pairs}` stands for a Map."""
    answer: list[Any] = run_node(SCRIPT, [str(FRONTEND / "src" / script), str(CATALOGUE), name], values)
    return answer


def run_node(program: str, arguments: list[str], question: Any) -> Any:
    """Run `program`, which reads and prints JSON, with the path of the TypeScript compiler and `arguments`.

    The Node.js that builds the page runs it. Without Node.js or the page's packages the test is skipped.
    """
    builder = page_builder()
    try:
        node, _ = builder.find_node()
    except builder.NotBuilt as problem:
        pytest.skip(str(problem))
    if not COMPILER.is_dir():
        pytest.skip("the page's packages are not installed: tools/frontend dev")
    command = [node, "-e", program, str(COMPILER), *arguments]
    done = subprocess.run(command, input=json.dumps(question), capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def page_builder() -> Any:
    """Return frontend/build.py as a module."""
    spec = importlib.util.spec_from_file_location("page_builder", FRONTEND / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
