"""`walltime mapping`: the meaning of a table's columns, as a file to correct."""

from pathlib import Path
from typing import Annotated

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.cli.output import Output


@manual(
    "guides/mappings",
    ("Recognise the columns of a table, and write them to a file for correction.", "mapping jobs.csv --out mapping.toml"),
    ("List the mappings of known data sets.", "mapping"),
)
def mapping(
    trace: Annotated[str | None, o.argument("A table of jobs; without it, list the mappings of known data sets.", "TABLE")] = None,
    *,
    out: Annotated[Path | None, o.out("the mapping", ".toml")] = None,
    output: Output,
) -> None:
    """Recognise the columns of a job table, and write a mapping file that you can correct."""
    if trace is None:
        _list(output)
        return
    from walltime.files import whole_file
    from walltime.logs.formats import mapping_for
    from walltime.logs.mapping import as_text
    from walltime.wording import printable

    described = mapping_for(trace)
    comments = [*described.reading, *(f"DOUBTFUL: {question}" for question in described.doubts)]
    text = "".join(f"# {line}\n" for line in comments) + "\n" + as_text(described.mapping)
    if out is not None:
        with whole_file(out) as file:
            file.write(text.encode())
    record = {"trace": trace, "reading": list(described.reading), "doubts": list(described.doubts), "mapping": text, "out": out}
    said = [text] if out is None else [*comments, f"mapping written to {printable(out)}; give it with --mapping {printable(out)}"]
    output.show(record, said)


def _list(output: Output) -> None:
    from walltime.logs.catalogue import shipped
    from walltime.tables import Facts

    abouts = {name: one.about for name, one in shipped().items() if one.about is not None}
    rows = [(name, about.title) for name, about in abouts.items()]
    told = "Files with these layouts are recognised; --mapping NAME selects a mapping. For addresses, add --json."
    record = {"mappings": {name: {"title": about.title, "page": about.page} for name, about in abouts.items()}}
    output.show(record, [Facts("Mappings of known data sets", rows), told])
