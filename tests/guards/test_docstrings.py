"""Tests docstrings: each field of a shared, sent or stored value has its own; none begins with a bare pronoun."""

from __future__ import annotations

import ast
import re

import pytest
from source import modules, public_classes, tree

FIELDS_EXPLAINED = ("howdah.spec", "howdah.wire", "howdah.master.state", "howdah.master.snapshots.state")
FIELDS_EXPLAINED_TOO = ("howdah.master.preflight.state", "howdah.master.decisions.actions")
COMMAND = re.compile(
    "(Add|Answer|Append|Apply|Ask|Assign|Be|Build|Cache|Call|Check|Choose|Collect|Commit|Compare|Compute|Convert|Copy|"
    "Count|Decide|Decode|Define|Describe|Detect|Discard|Download|Draw|Dump|Embed|End|Estimate|Evaluate|Exchange|Fetch|"
    "Fill|Find|Form|Give|Grant|Handle|Hold|Keep|List|Listen|Look|Make|Move|Name|Order|Parse|Present|Protect|Put|Read|"
    "Reassign|Rebuild|Reduce|Release|Remember|Remove|Return|Run|Sample|Say|Search|Send|Serve|Shift|Show|Start|"
    "Store|Summarize|Take|Tell|Track|Upload|Wait|Wake|Watch|Write) "
)
"""A function is described by a command ("Read the log."), a module and a class by what they do ("Reads logs.") or by a
noun. A class that is itself a command to somebody may be described by one: see `is_command`."""
PRONOUN = re.compile(
    r"^(It|They|There|Theirs|Ours|Its|This|That|These|Those|He|She)\b(?! (job|task|master|module|machine))"
)


def is_dataclass(node: ast.ClassDef) -> bool:
    """Whether a class is decorated as a dataclass."""
    return any("dataclass" in ast.unparse(each) for each in node.decorator_list)


def unexplained(node: ast.ClassDef) -> list[str]:
    """The public fields of a dataclass that no docstring follows."""
    fields = [each for each in node.body if isinstance(each, (ast.AnnAssign, ast.Expr))]
    found = []
    for here, after in zip(fields, [*fields[1:], None], strict=True):
        if isinstance(here, ast.AnnAssign) and isinstance(here.target, ast.Name) and not here.target.id.startswith("_"):
            explained = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if not explained:
                found.append(here.target.id)
    return found


@pytest.mark.parametrize("place", [*FIELDS_EXPLAINED, *FIELDS_EXPLAINED_TOO])
def test_every_field_has_its_own_docstring(place: str) -> None:
    lacking = {
        f"{module}.{node.name}": names
        for module, node in public_classes()
        if (module == place or module.startswith(f"{place}.")) and is_dataclass(node) and (names := unexplained(node))
    }
    assert lacking == {}


def test_every_module_says_what_it_is() -> None:
    silent = [module for module in modules() if not ast.get_docstring(tree(module)) and "proto" not in module]
    assert silent == []


def docstrings() -> list[tuple[str, str]]:
    """Return every docstring of the package, of modules, classes and functions, with the name of what it describes."""
    return [
        (f"{module}.{getattr(node, 'name', '')}", text)
        for module in modules()
        for node in ast.walk(tree(module))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module))
        and (text := ast.get_docstring(node))
    ]


def test_no_docstring_begins_with_a_pronoun() -> None:
    found = [f"{name}: {text.splitlines()[0]}" for name, text in docstrings() if PRONOUN.match(text)]
    assert found == []


def functions() -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    """Every function of the package with its module and docstring."""
    return [
        (module, node, ast.get_docstring(node) or "")
        for module in modules()
        for node in ast.walk(tree(module))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def yields(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function is a generator; functions inside it do not count."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)
    return False


def test_answers_of_yes_or_no_are_described_in_one_way() -> None:
    other = re.compile(r"(Return True (if|when|while)|Say whether|Tell whether|Whether)\b")
    assert [f"{module}.{node.name}" for module, node, text in functions() if other.match(text)] == []


def test_a_generator_yields_what_it_gives() -> None:
    found = [
        f"{module}.{node.name}" for module, node, text in functions() if text.startswith("Return ") and yields(node)
    ]
    assert found == []


def test_a_module_says_what_it_does_in_the_third_person() -> None:
    found = {module: text for module in modules() if (text := ast.get_docstring(tree(module))) and COMMAND.match(text)}
    assert found == {}


def is_command(module: str, name: str) -> bool:
    """Return whether a class is a command: a request to a helper process, or an action of the master's decisions."""
    return name.endswith("Request") or module == "howdah.master.decisions.actions"


def test_a_class_says_what_it_does_in_the_third_person() -> None:
    found = [
        f"{module}.{node.name}: {text}"
        for module in modules()
        for node in ast.walk(tree(module))
        if isinstance(node, ast.ClassDef) and (text := ast.get_docstring(node)) and COMMAND.match(text)
        if not is_command(module, node.name)
    ]
    assert found == []


def properties() -> list[tuple[str, ast.FunctionDef, str]]:
    """Return every property of the package, named with its class, and its docstring."""
    return [
        (f"{module}.{owner.name}.{node.name}", node, ast.get_docstring(node) or "")
        for module in modules()
        for owner in ast.walk(tree(module))
        if isinstance(owner, ast.ClassDef)
        for node in owner.body
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(each).endswith(("property", "cached_property")) for each in node.decorator_list)
    ]


def test_a_property_says_what_it_returns() -> None:
    """A private property, or one of a private class, may have no docstring."""
    found = [name for name, _, text in properties() if not text.startswith("Return ") and (text or "._" not in name)]
    assert found == []


def test_errors_are_listed_in_a_block() -> None:
    found = [f"{name}: {text.splitlines()[0]}" for name, text in docstrings() if re.search(r"\bRaises [A-Z`]", text)]
    assert found == []
