"""The page of questions, and entries of the search that lead straight to their answers, from `questions.toml`."""

import html
import json
import re
import tomllib
from pathlib import Path
from typing import Any

PAGE = "guides/questions.md"
PEOPLE = {
    "operator": "You run a cluster",
    "user": "You use a cluster",
    "researcher": "You study scheduling",
    "student": "You are new to it",
}
CODE = re.compile(r"`([^`]+)`")


def questions() -> list[dict[str, str]]:
    """Return the questions: the person who asks, the words to search for, the page of the answer, and a short answer."""
    with Path(__file__).with_suffix(".toml").open("rb") as file:
        return tomllib.load(file)["question"]


def page() -> str:
    """Return the page: the questions by person, with short answers and links."""
    parts = [
        "# Questions and answers",
        "Each answer ends with a link to the page with the details. The search at the top of every page finds these questions, too.",
    ]
    for person, title in PEOPLE.items():
        parts.append(f"## {title}")
        for one in questions():
            if one["for"] == person:
                link = one["page"] if one["page"].startswith("guides/") else f"../{one['page']}"
                parts += [
                    f"### {one['asked']}",
                    f"{one['answer']} → [{_title(one['page'])}]({link.removeprefix('guides/')})",
                ]
    return "\n\n".join(parts) + "\n"


def _title(page: str) -> str:
    """Return the title of a page, or of the notebook from which it is made."""
    file = Path(__file__).parents[1] / page.partition("#")[0]
    text = file.read_text() if file.exists() else "".join(json.loads(file.with_suffix(".ipynb").read_text())["cells"][0]["source"])
    return text.partition("\n")[0].removeprefix("# ")


def entries() -> list[dict[str, Any]]:
    """Return the entries of the search index: question, short answer and search words of each answer."""
    found = []
    for one in questions():
        answer = CODE.sub(r"<code>\1</code>", html.escape(one["answer"], quote=False))
        title = html.escape(one["asked"], quote=False)
        text = f"<p>{title}</p> <p>{answer}</p> <p>{one['words']}</p>"
        found.append({"location": one["page"].replace(".md", ".html"), "text": text, "tags": [one["asked"], *one["words"].split(", ")]})
    return found


def on_post_build(config, **_) -> None:
    """Put the questions into the index of the search, below the addresses that have no entry yet; called by MkDocs."""
    path = Path(config.site_dir) / "search" / "search_index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    for one in entries():
        there = [doc for doc in index["docs"] if doc["location"] == one["location"]]
        if not there:
            raise ValueError(f"questions.toml: the documentation has no {one['location']}")
        # an address has one entry: the words of all of its questions come before its own text
        there[0]["text"] = f"{one['text']} {there[0]['text']}"
        there[0]["tags"] = [*there[0].get("tags", []), *one["tags"]]  # which are not shown
    index["config"]["fields"]["tags"] = dict(index["config"]["fields"]["title"])  # count for as much, and not for a thousand times more
    path.write_text(json.dumps(index, ensure_ascii=False), encoding="utf-8")
