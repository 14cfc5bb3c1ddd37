"""Pages on paper, the text of an e-mail, and what stands on the first screen."""

import re

import pytest
from matplotlib.figure import Figure

from walltime.report.html import render, write_page
from walltime.report.page import Drawing, Page, Section, first_screen
from walltime.report.pdf import mail_text, pdf_bytes
from walltime.tables import Table


def page(rows=3, sections=1, **more):
    table = Table(["change", "mean wait"], [[f"row {k}", f"{k} h"] for k in range(rows)], "waits")
    drawing = Drawing(Figure(figsize=(4, 2)), "one", "a picture")
    shown = [Section(f"part {k}", [table]) for k in range(sections)]
    return Page("kind", "Title", ["An answer of $5_a$."], [Section("drawn", [drawing, table]), *shown], **more)


@pytest.mark.slow
def test_pdf__one_or_two_sides_and_the_same_bytes():
    short = pdf_bytes(page(numbers=[("wait", "1 h")]))
    assert short.startswith(b"%PDF")
    assert short == pdf_bytes(page(numbers=[("wait", "1 h")]))
    assert len(re.findall(rb"/Type /Page\b", short)) == 1
    assert len(re.findall(rb"/Type /Page\b", pdf_bytes(page(rows=14, sections=12)))) == 2


def test_mail__says_the_answer_and_names_what_is_attached():
    text = mail_text(page(numbers=[("wait", "1 h")], caveats=["first", "second", "third", "fourth"]), "Attached: page.pdf")
    assert text.startswith("Subject: Title\n\nAn answer of $5_a$.\n\n  wait: 1 h\n")
    assert "2 further caveats" in text
    assert text.endswith("Attached: page.pdf\n")


@pytest.mark.slow
def test_write_page__pdf_by_its_ending(tmp_path):
    write_page(tmp_path / "page.pdf", page())
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "page.txt").read_text().startswith("Subject: Title")


def test_first_screen__numbers_and_picture_come_before_facts_and_caveats():
    made = page(numbers=[("wait", "1 h")], facts=[("log", "KTH")], caveats=["beware"])
    assert first_screen(made).picture is not None
    text = render(made)
    places = [text.index(part) for part in ("An answer", "facts first", "<figure", "KTH", "beware", "part 0")]
    assert places == sorted(places)
    assert text.count("<figure") == 1
