"""The parts of a page, and its forms: HTML, terminal, PDF, figures."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.report.html import write_page as write_page

__getattr__, __dir__, __all__ = lazy(__name__)
