"""Counts what CONTRIBUTING promises of the code: `python -m tests.tools.house [ROOT]` prints one line per measure.

A walk follows the calls from one function in the order of the source, each function once. A stay is a run of functions
of one file, a return is a stay in a file that the walk had left.

The counters see names and literals only, so a 0 proves nothing that they cannot see:

- A walk does not follow a callback, a table of functions, a property, a method of a name that has several definitions,
  or a function of `stream`.
- Commands and options: no docstring (settings and errors have theirs shown to users), no command that is put together
  from pieces, and no option of one dash. A word after `farmwatch` that the expression excepts is not counted either.
- Texts cut: only at the literal `; `, not at another separator, by a constant, or by a regular expression.
- Functions: lines of the body, not of what it calls; settings: those of the generated page, as it was last written.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("crawler", "filters", "scoring", "stream", "replay", "farmwatch", "lab")
BELOW = ("crawler", "filters", "scoring", "stream", "replay")
WALKS = {
    "compare": "replay",
    "current_rate": "farmwatch",
    "rate_lines": "scoring",
    "Answers.apply": "crawler",
    "plan": "replay",
}
GROUND = "stream"  # its words are known to the reader: a walk does not follow them
COMMAND = re.compile(
    r"`farmwatch [a-z]|(?<!this )\bfarmwatch (?!reads|has\b|cannot|computes|is\b)[a-z]+ |(?<![\w-])--[a-z]"
    r"|\bpip install\b"
)
Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class House:
    """The parsed modules of a working folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = [file for package in PACKAGES for file in sorted((root / package).rglob("*.py"))]
        self.trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in self.files}
        self.modules = {self.module(file): file for file in self.files}
        self.defined: dict[str, list[tuple[Path, Function, str]]] = defaultdict(list)  # name -> where
        self.imported: dict[Path, dict[str, tuple[str, str]]] = {}
        for file, tree in self.trees.items():
            self.imported[file] = {
                alias.asname or alias.name: (node.module or "", alias.name)
                for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom)
                for alias in node.names
            }
            for owner, function in functions(tree):
                self.defined[function.name].append((file, function, owner))
                self.defined[f"{owner}.{function.name}"].append((file, function, owner))

    def module(self, file: Path) -> str:
        """The dotted name of a file."""
        return ".".join(file.relative_to(self.root).with_suffix("").parts).removesuffix(".__init__")

    def walk(self, start: str, package: str) -> tuple[int, int]:
        """Stays and files of a walk from the function `start` of a package."""
        stays: list[Path] = []
        seen: set[Function] = set()
        waiting = [one for one in self.defined[start] if one[0].is_relative_to(self.root / package)][:1]
        while waiting:
            file, function, owner = waiting.pop()
            if function in seen:
                continue
            seen.add(function)
            if not stays or stays[-1] != file:
                stays.append(file)
            waiting.extend(reversed(list(self._called(file, function, owner))))
        return len(stays), len(set(stays))

    def _called(self, file: Path, function: Function, owner: str) -> Iterator[tuple[Path, Function, str]]:
        calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
        for call in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
            match call.func:
                case ast.Name(name):
                    module, original = self.imported[file].get(name, ("", name))
                    place = self.modules.get(module, file if not module else None)
                    yield from self._in(original, place)
                    yield from self._in(f"{original}.__init__", place)
                case ast.Attribute(ast.Name("self"), name):
                    yield from self._in(f"{owner}.{name}", file)
                case ast.Attribute(_, name) if len(named := self.defined.get(name, [])) == 1:
                    yield from (one for one in named if self.package(one[0]) == self.package(file))
                case _:
                    pass

    def _in(self, name: str, place: Path | None) -> Iterator[tuple[Path, Function, str]]:
        yield from [one for one in self.defined.get(name, ()) if one[0] == place and self.package(place) != GROUND][:1]

    def package(self, file: Path) -> str:
        """The top-level package of a file."""
        return file.relative_to(self.root).parts[0]


def functions(tree: ast.AST, owner: str = "") -> Iterator[tuple[str, Function]]:
    """The functions of a tree with the class that each is in."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, FUNCTIONS):
            yield owner, node
            yield from functions(node, owner)
        else:
            yield from functions(node, node.name if isinstance(node, ast.ClassDef) else owner)


def body_lines(function: Function) -> int:
    """Lines of a body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body and body[-1].end_lineno else 0


def spoken(tree: ast.AST) -> Iterator[ast.Constant]:
    """String constants that document nothing."""
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node


def lines_of(files: list[Path]) -> int:
    """Lines of files."""
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def measures(root: Path) -> Iterator[tuple[str, object]]:
    """Each measure with its value."""
    house = House(root)
    tests = sorted((root / "tests").rglob("*.py"))
    yield "product files", len(house.files)
    yield "product lines", lines_of(house.files)
    yield "test lines", lines_of(tests)
    folders = Counter(file.parent for file in house.files if file.name != "__init__.py")
    folder, number = folders.most_common(1)[0]
    yield "fullest folder", f"{number} ({folder.relative_to(root)})"
    for start, package in WALKS.items():
        stays, files = house.walk(start, package)
        yield f"walk of {start}: stays, files, returns", f"{stays}, {files}, {stays - files}"
    nodes = [node for tree in house.trees.values() for node in ast.walk(tree)]
    yield (
        "`found` bound",
        sum(
            (isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id == "found")
            or (isinstance(n, ast.arg) and n.arg == "found")
            for n in nodes
        ),
    )
    cutting = {"split", "partition", "rsplit", "rpartition"}
    yield (
        "texts cut at `; `",
        sum(
            isinstance(n, ast.Call)
            and isinstance(n.func, ast.Attribute)
            and n.func.attr in cutting
            and any(isinstance(a, ast.Constant) and a.value == "; " for a in n.args)
            for n in nodes
        ),
    )
    below = [tree for file, tree in house.trees.items() if file.relative_to(root).parts[0] in BELOW]
    yield (
        "commands and options named below farmwatch/",
        sum(bool(COMMAND.search(str(constant.value))) for tree in below for constant in spoken(tree)),
    )
    classes = Counter(n.name for n in nodes if isinstance(n, ast.ClassDef) and not n.name.startswith("_"))
    yield "public classes named twice", " ".join(sorted(name for name, count in classes.items() if count > 1)) or 0
    known = [function for tree in house.trees.values() for _, function in functions(tree)]
    private = [one for one in known if one.name.startswith("_") and not one.name.startswith("__")]
    yield (
        "functions, private, under four lines",
        (f"{len(known)}, {len(private)}, {sum(body_lines(one) < 4 for one in private)}"),
    )
    settings = (root / "docs/reference/configuration.md").read_text(encoding="utf-8")
    yield "settings", len(set(re.findall(r"`FARMWATCH_[A-Z_0-9]+` \|$", settings, re.MULTILINE)))


if __name__ == "__main__":
    for name, value in measures(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()):
        print(f"{name}\t{value}")
