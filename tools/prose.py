"""Checks the English of documentation, docstrings, comments and messages: `python tools/prose.py [--count] [PATH ...]`.

The docstrings of functions in src begin with a verb of a list, except those of properties.

Without paths, it reads all pages, notebooks and modules of the project, and accepts as many findings per folder as `tools/prose.toml`
allows; these numbers may only fall. The patterns and limits are in the same file. Code in pages, quotations in backticks and generated
blocks are not read. `--count` prints the number of findings by rule and by file.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PLACES = (
    "*.md",
    "docs/**/*.md",
    "paper/*.md",
    "docs/**/*.ipynb",
    "src/**/*.py",
    "tools/*.py",
    "benchmarks/*.py",
    "docs/generators/*.py",
    "validation/*.[mp][dy]",
)
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]*_]*\s+(?=[A-Z0-9`*\[(])|\n\s*\n|:\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)")
MARKUP = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|\[([^\]]*)\]\[[^\]]*\]|<[^>]+>|[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}")
GENERATED = re.compile(r"<!-- generated: [^>]*-->(?:(?!<!-- generated).)*?<!-- end generated -->", re.DOTALL)
PROGRAM = re.compile(r"^(?:import|from|const|async|def)\b.*\n|^\w+ = .*\n|^\s*\{\n|=> \{$", re.MULTILINE)
DOCSTRING_PART = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)|\n(?=\s*\S+(?: \S+)* {2,}\S)")  # paragraphs, list items, rows
NAMES = re.compile(r"[\w\s-]{150,}")  # long, without punctuation: a list of names
CODE = re.compile(r"``[^`]*``|`[^`]*`")


@dataclass(frozen=True)
class Passage:
    """A piece of prose, the line of its file at which it begins, and its kind: text, heading or cell."""

    line: int
    text: str
    kind: str = "text"


NOUNS = {"property", "cached_property", "setter", "item", "intrinsic"}
"""Decorators of functions whose docstring may be a noun phrase: a value, the title of a paper's item, or a declaration of types."""


@dataclass(frozen=True)
class Rule:
    """A pattern that prose must not contain, the suggestion, and a pattern of sentences that are exempt."""

    name: str
    pattern: re.Pattern[str]
    suggestion: str
    exempt: re.Pattern[str] | None


def markdown_passages(text: str, first_line: int = 1) -> Iterator[Passage]:
    """Yield the paragraphs, headings and table cells of a Markdown page, without its code, front matter and generated blocks."""
    paragraph: list[str] = []
    start = first_line
    fence = ""
    lines = GENERATED.sub(lambda block: "\n" * block[0].count("\n"), text).splitlines()
    begin = lines.index("---", 1) + 1 if lines[:1] == ["---"] and "---" in lines[1:] else 0
    for number, line in enumerate([*lines[begin:], ""], first_line + begin):
        stripped = line.strip()
        mark = stripped[:3]
        if fence or mark in ("```", "~~~"):
            fence = "" if fence and stripped == fence else fence or mark
            stripped = ""
        if stripped.startswith(("<!--", "<", "???", "!!!")) or line.startswith("    $ "):
            stripped = ""
        if stripped.startswith("#"):
            yield Passage(number, stripped.lstrip("# "), "heading")
            stripped = ""
        elif stripped.startswith("|"):
            if not re.fullmatch(r"[|:\- ]+", stripped):
                yield from (Passage(number, cell.strip(), "cell") for cell in re.split(r"(?<!\\)\|", stripped.strip("|")))
            stripped = ""
        item = re.match(r"([-*+]|\d+[.)])\s+", stripped)
        if paragraph and (not stripped or item):
            yield Passage(start, " ".join(paragraph))
            paragraph = []
        if stripped:
            start = start if paragraph else number
            paragraph.append(stripped[item.end() :] if item else stripped)


def python_passages(text: str) -> Iterator[Passage]:
    """Yield the docstrings, comments and messages (strings of four words and more) of a module."""
    tree = ast.parse(text)
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in parts:
            continue
        if isinstance(node, ast.JoinedStr):
            value = "".join(str(part.value) if isinstance(part, ast.Constant) else "`x`" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            value = node.value
        else:
            continue
        if len(value.split()) >= 4 and re.search(r"[a-z] [a-z]", value) and not PROGRAM.search(value) and not NAMES.fullmatch(value):
            code = re.sub(r"(?m)^\s*>>>.*$|^\s{4,}\S.*::$", "", value)
            for paragraph in DOCSTRING_PART.split(code):
                yield Passage(node.lineno, " ".join(paragraph.split()), "docstring")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and len(token.string.split()) >= 4 and "noqa" not in token.string and "type:" not in token.string:
            yield Passage(token.start[0], token.string.lstrip("# "))


def without_verb(text: str, verbs: set[str]) -> Iterator[tuple[int, str]]:
    """Yield line and first words of the docstrings of a module's functions that do not begin with one of the verbs."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (words := (ast.get_docstring(node) or "").split()):
            decorators = {ast.unparse(one).partition("(")[0].rpartition(".")[2] for one in node.decorator_list}
            if not decorators & NOUNS and words[0].strip(".,:;") not in verbs:
                yield node.lineno, " ".join(words[:6])


def passages(file: Path) -> Iterator[Passage]:
    """Yield the prose of a page, a notebook or a module."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        yield from python_passages(text)
    elif file.suffix == ".ipynb":
        for number, cell in enumerate(json.loads(text)["cells"], 1):
            if cell["cell_type"] == "markdown":
                yield from (Passage(number, found.text, found.kind) for found in markdown_passages("".join(cell["source"])))
    else:
        yield from markdown_passages(text)


def findings(passage: Passage, rules: list[Rule], limits: dict[str, int]) -> Iterator[tuple[str, str]]:
    """Yield the name of each rule that a passage breaks, with the words at fault and the suggestion."""
    plain = MARKUP.sub(lambda match: match[1] or match[2] or "", CODE.sub("`x`", passage.text))
    words = len(plain.split())
    is_question = passage.kind == "heading" and "?" in plain
    if passage.kind in ("heading", "cell") and words > limits[passage.kind] and not is_question:
        yield passage.kind, f"{words} words, at most {limits[passage.kind]}: {plain[:60]}"
    if passage.kind == "text" and words > limits["paragraph"]:
        yield "paragraph", f"{words} words, at most {limits['paragraph']}: {plain[:60]}"
    for sentence in SENTENCE_END.split(plain):
        count = len(sentence.split())
        if passage.kind in ("text", "docstring") and count > limits["sentence"]:
            yield "sentence", f"{count} words, at most {limits['sentence']}: {sentence[:60].strip()}"
        if passage.kind == "text" and sentence.count(";") > limits["semicolon"]:
            yield "semicolon", f"{sentence.count(';')} semicolons, at most {limits['semicolon']}: {sentence[:60].strip()}"
        for rule in rules:
            if (found := rule.pattern.search(sentence)) and not (rule.exempt and rule.exempt.search(sentence)):
                around = sentence[max(found.start() - 20, 0) : found.end() + 30].strip()
                yield rule.name, f"'{found[0].strip()}' in '{around}'; {rule.suggestion}"


def area(name: str) -> str:
    """Return the folder by which findings are counted: a package of the source, or the first folder of another file."""
    parts = name.split("/")
    if parts[0] == "src":
        return "/".join(parts[:3]) if len(parts) > 3 else "src/walltime"
    return "/".join(parts[:2]) if parts[:2] == ["docs", "generators"] else parts[0] if len(parts) > 1 else "."


def read_rules(configuration: dict[str, Any]) -> list[Rule]:
    """Return the rules of the patterns of `tools/prose.toml`."""
    return [
        Rule(
            entry["say"],
            re.compile(entry["match"], re.IGNORECASE),
            entry["say"],
            re.compile(entry["unless"], re.IGNORECASE) if "unless" in entry else None,
        )
        for entry in configuration["pattern"]
    ]


def main() -> int:
    """Print the findings; return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--count", action="store_true", help="print numbers instead of findings")
    arguments = parser.parse_args()
    configuration = tomllib.loads((ROOT / "tools" / "prose.toml").read_text(encoding="utf-8"))
    rules, limits = read_rules(configuration), configuration["limits"]
    files = [
        file
        for path in arguments.paths or [ROOT]
        for file in ([path] if path.is_file() else sorted({found for place in PLACES for found in path.glob(place)}))
    ]
    found = [
        (file.resolve().relative_to(ROOT).as_posix(), passage.line, *finding)
        for file in files
        for passage in passages(file)
        for finding in findings(passage, rules, limits)
    ]
    verbs = set(configuration["verbs"]["first"].split())
    found += [
        (
            file.resolve().relative_to(ROOT).as_posix(),
            line,
            "verb",
            f"a docstring begins with a verb of tools/prose.toml, not with '{words}'",
        )
        for file in files
        if file.suffix == ".py" and (ROOT / "src") in file.resolve().parents
        for line, words in without_verb(file.read_text(encoding="utf-8"), verbs)
    ]
    if arguments.count:
        for title, column in (("rule", 2), ("file", 0)):
            print(f"by {title}")
            for key, count in Counter(finding[column] for finding in found).most_common():
                print(f"  {count:5} {key}")
    by_area = Counter(area(name) for name, *_ in found)
    allowed = {} if arguments.paths else configuration["allowed"]
    over = {name for name, count in by_area.items() if count > allowed.get(name, 0)}
    if not arguments.count:
        for name, line, _, text in found:
            if area(name) in over:
                print(f"{name}:{line}: {text}")
    for name in sorted(over):
        print(f"prose: {by_area[name]} findings in {name}, more than the {allowed.get(name, 0)} allowed")
    for name, count in sorted(allowed.items()):
        if by_area[name] < count:
            over.add(name)
            print(f"prose: {name} has {by_area[name]} findings; lower its number in tools/prose.toml from {count}")
    return int(bool(over))


if __name__ == "__main__":
    sys.exit(main())
