"""Pages made of the notebooks in `docs/notebooks`: each is run when the documentation is built, and shown with what its cells give."""

import re
import textwrap
from pathlib import Path
from typing import Any

import ahead
from mkdocs.structure.files import File

FOLDER = Path(__file__).parents[1] / "notebooks"
SECONDS = 900
"""Most time that one cell may take: the first run on a computer compiles the engine."""
WIDTH = 88
"""Characters that fit a line of the page."""


def on_config(config):
    """Begin to run the notebooks, the longest first; called by MkDocs."""
    for path in sorted(FOLDER.glob("*.ipynb"), reverse=True):
        ahead.begin(executed, path)
    return config


def on_files(files, config):
    """Add a page for each notebook, behind all others; called by MkDocs."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        files.append(File.generated(config, f"{FOLDER.name}/{path.stem}.md", content=f"# {path.stem}\n"))
    return files


def on_page_markdown(markdown: str, page, config, files) -> str:
    """The page of a notebook, when it has been run, and its figures; called by MkDocs."""
    path = FOLDER / f"{Path(page.file.src_uri).stem}.ipynb"
    if Path(page.file.src_uri).parent.name != FOLDER.name or not path.exists():
        return markdown
    text, figures = as_markdown(ahead.result(executed, path), path.stem)
    for name, content in figures.items():
        files.append(File.generated(config, f"{FOLDER.name}/{name}", content=content))
    return text


def executed(path: Path) -> Any:
    """The notebook with the outputs of its cells; raises nbclient's CellExecutionError if one fails."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    return NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}}).execute()


def as_markdown(notebook: Any, name: str) -> tuple[str, dict[str, str]]:
    """A notebook as a page, and the figures of the page by file name."""
    parts: list[str] = []
    figures: dict[str, str] = {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        elif cell.cell_type == "code":
            parts.append(f"```python\n{cell.source}\n```")
            parts += [_shown(output, name, figures) for output in cell.outputs]
    heading, _, rest = "\n\n".join(parts).partition("\n\n")
    note = f"This page is a [notebook]({name}.ipynb), run when the documentation was built. Save it from there, and open it in Jupyter."
    return f"{heading}\n\n{note}\n\n{rest}\n", figures


def _shown(output: Any, name: str, figures: dict[str, str]) -> str:
    """One output: a table as HTML, a figure as a picture, anything else as text."""
    data = output.get("data", {})
    if "image/svg+xml" in data:
        file = f"{name}-{len(figures) + 1}.svg"
        figures[file] = data["image/svg+xml"]
        return f"![Output of the cell above]({file})"
    if "text/html" in data:
        html = re.sub(r"\n\s*\n", "\n", data["text/html"])  # an empty line would end the block of HTML
        return f'<div class="notebook-output" tabindex="0">{html}</div>'
    text = output.get("text", data.get("text/plain", ""))
    lines = [part for line in text.splitlines() for part in textwrap.wrap(line, WIDTH) or [""]]
    return "\n".join(["```text", *lines, "```"])
