"""Read tables from Parquet, JSON, HTCondor's class ads, and lines such as `JobId=17 JobState=FAILED`; nested values become columns."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from walltime.dataframes import pl
from walltime.logs.input import LogFile, reading
from walltime.logs.table_file import PARQUET

_JOB_FIELDS = 3
"""Smallest number of simple values with which an object is a job, and not a file of jobs."""
_DEEPEST = 6
"""Maximum depth of nested objects and lists in JSON that become columns."""
_LINES = re.compile(rb"\A\{[^\n]*\}\s*\n\s*\{")
"""JSON lines: one line is a whole object, and another one follows."""
_CLASS_ADS = re.compile(rb"\A(?:\s*+\*\*\*[^\n]*+\n)?+\s*+(?:[A-Za-z]\w*+ = [^\n]*+\r?\n){5}")
_CLASS_ADS_XML = re.compile(rb"\s*(?:<[?!][^>]*>\s*)*<classads")
_NEW_CLASS_ADS = re.compile(rb"\{?\s*\[\s*[A-Za-z]\w*\s*=")
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{};]|[^"\[\]{};]+|"')
_FIRST_PAIR = re.compile(rb"[A-Za-z]\w*+=\S")
_FEWEST_PAIRS = 4
_PAIR = re.compile(r"(?:^|(?<=\s))([A-Za-z][\w:/.@-]*)=(.*?)(?=\s[A-Za-z][\w:/.@-]*=|$)")


def holds_objects(head: bytes) -> bool:
    """Return whether a file begins with JSON, HTCondor's class ads, or pairs as printed by `scontrol show job`."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if _CLASS_ADS.match(start) or _CLASS_ADS_XML.match(start) or _NEW_CLASS_ADS.match(start):
        return True
    if _FIRST_PAIR.match(start):
        lines = start.split(b"\n", _FEWEST_PAIRS)[:_FEWEST_PAIRS]
        return sum(len(_PAIR.findall(line[:1000].decode(errors="replace").strip())) for line in lines) >= _FEWEST_PAIRS
    return start[:1] == b"{" or (start[:1] == b"[" and start[1:].lstrip()[:1] in (b"{", b"]", b""))


def frame_of(file: LogFile, rows: int | None = None) -> pl.DataFrame:
    """Return the table in a Parquet or JSON file, or its first rows. Raises LogError."""
    if file.head.startswith(PARQUET):
        with reading(file.where):
            return pl.read_parquet(io.BytesIO(file.content()), n_rows=rows)
    content = file.content().removeprefix(b"\xef\xbb\xbf").lstrip()
    with reading(file.where, "XML" if _CLASS_ADS_XML.match(content) else "JSON", "not_json"):
        table = _table_of_objects(content)
    return _flat(table if rows is None else table.head(rows))


def _flat(table: pl.DataFrame) -> pl.DataFrame:
    """Return the table with columns for the parts of objects and lists.

    `a.b` is the entry b of an object; `a.first`, `a.last` and `a.count` describe a list; `a.b.count` counts the lists b in a list of
    objects.
    """
    for _ in range(_DEEPEST):
        if not any(isinstance(series.dtype, pl.Struct | pl.List) for series in table):
            break
        parts: list[pl.Series] = []
        for series in table:
            name, kind = series.name, series.dtype
            if isinstance(kind, pl.Struct):
                parts += [series.struct.field(field.name).alias(f"{name}.{field.name}") for field in kind.fields]
            elif isinstance(kind, pl.List):
                parts += [series.list.first().alias(f"{name}.first"), series.list.last().alias(f"{name}.last")]
                parts.append(series.list.len().alias(f"{name}.count"))
                inner = kind.inner.fields if isinstance(kind.inner, pl.Struct) else []
                for field in inner:
                    if isinstance(field.dtype, pl.List):
                        counted = series.list.eval(pl.element().struct.field(field.name).list.len()).list.sum()
                        parts.append(counted.alias(f"{name}.{field.name}.count"))
            else:
                parts.append(series)
        table = pl.DataFrame(list({one.name: one for one in parts}.values()))
    return table


def _table_of_objects(content: bytes) -> pl.DataFrame:
    if _CLASS_ADS_XML.match(content):
        return _of_rows(_ads_in_xml(content))
    if _NEW_CLASS_ADS.match(content):
        return _of_rows(_new_class_ads(content.decode("utf-8", "replace")))
    if content[:1] not in (b"[", b"{"):
        return _class_ads(content) if _CLASS_ADS.match(content) else _pairs(content)
    is_lines = _LINES.match(content) is not None
    try:
        if is_lines:
            return pl.read_ndjson(io.BytesIO(content), infer_schema_length=None)
        if content[:1] == b"[":
            return pl.read_json(io.BytesIO(content), infer_schema_length=None)
    except pl.exceptions.ComputeError:  # values of several kinds in a column
        pass
    rows = [json.loads(line) for line in content.splitlines() if line.strip()] if is_lines else json.loads(content)
    rows = _rows_in(rows) if isinstance(rows, dict) else rows
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise ValueError("it has values that are not objects")
    return _of_rows(rows)


def _rows_in(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the jobs in an object: its list of objects, its objects keyed by name, its columns, or the object itself."""
    values = list(whole.values())
    if values and all(isinstance(one, dict) for one in values):
        by_number = [all(key.isdecimal() for key in one) for one in (whole, *values)]
        if by_number[0] or not all(by_number[1:]):
            return values
        if len({tuple(one) for one in values}) == 1:  # columns, as pandas writes them
            return [dict(zip(whole, row, strict=True)) for row in zip(*(one.values() for one in values), strict=True)]
    lists = []
    for value in values:
        if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            lists.append(value)
        elif isinstance(value, dict) and value and all(isinstance(one, dict) and len(one) >= _JOB_FIELDS for one in value.values()):
            lists.append([{"job_id": name, **one} for name, one in value.items()])  # as from `qstat -f -F json`
    if len(lists) == 1:
        return lists[0]
    if values and all(isinstance(one, list) for one in values) and len(set(map(len, values))) == 1:
        return [dict(zip(whole, row, strict=True)) for row in zip(*values, strict=True)]
    return [whole]


def _of_rows(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Return a table of these objects; a column with values of several kinds becomes texts."""
    columns = []
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        try:
            column = pl.Series(name, values, strict=False)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, TypeError, ValueError, OverflowError):
            column = None
        if column is None or column.dtype == pl.Object:  # the type that polars uses if no other fits all values
            column = pl.Series(name, [None if one is None else json.dumps(one) for one in values], pl.String)
        columns.append(column)
    return pl.DataFrame(columns)


def _class_ads(content: bytes) -> pl.DataFrame:
    """Parse class ads from `condor_history -long`, or from HTCondor's history file: lines such as `Owner = "ann"`."""
    rows: list[dict[str, str]] = [{}]
    for line in content.decode("utf-8", "replace").splitlines():
        name, sign, value = line.partition(" = ")
        if sign and not line.startswith("***"):
            rows[-1][name.strip()] = value.strip().removeprefix('"').removesuffix('"')
        elif rows[-1]:
            rows.append({})
    return pl.DataFrame([row for row in rows if row], infer_schema_length=None)


def _new_class_ads(text: str) -> list[dict[str, str]]:
    """Parse class ads from `condor_q -long:new`: `[ ClusterId = 17; Owner = "ann" ]`, which may be in a list."""
    rows: list[dict[str, str]] = []
    depth, inside, words = 0, 1 + text.startswith("{"), ""
    for piece in _PIECE.findall(text):
        depth += piece in ("[", "{")
        if piece == "[" and depth == inside:
            rows.append({})
        elif depth == inside and piece in (";", "]"):
            name, sign, value = words.partition("=")
            if sign:
                rows[-1][name.strip()] = value.strip().removeprefix('"').removesuffix('"')
            words = ""
        elif depth >= inside:
            words += piece
        depth -= piece in ("]", "}")
    if depth:
        raise ValueError("its last class ad is not closed")
    return rows


def _ads_in_xml(content: bytes) -> list[dict[str, str]]:
    """Parse class ads from `condor_history -xml`: attributes such as `<a n="Owner"><s>ann</s></a>`; lists are left out."""
    try:
        ads = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from None
    rows = [{str(one.get("n")): value for one in ad if len(one) == 1 and (value := _value_in_xml(one[0])) is not None} for ad in ads]
    if not any(rows):
        raise ValueError("it has no class ads")
    return rows


def _value_in_xml(value: ElementTree.Element) -> str | None:
    """Return the value of an attribute as written in a class ad; None if it is unknown or a list."""
    if value.tag == "b":
        return {"t": "true", "f": "false"}.get(value.get("v", ""))
    return None if len(value) else value.text


def _pairs(content: bytes) -> pl.DataFrame:
    """Parse pairs such as `JobId=17 UserId=ann(1001)`: from `scontrol show job`, or from Slurm's file of completed jobs."""
    rows: list[dict[str, str]] = []
    first = None
    for line in content.decode("utf-8", "replace").splitlines():
        pairs = _PAIR.findall(line.strip())
        if pairs and pairs[0][0] == (first := first or pairs[0][0]):
            rows.append({})
        if rows:
            rows[-1] |= {name: value.strip() for name, value in pairs}
    return pl.DataFrame(rows, infer_schema_length=None)
