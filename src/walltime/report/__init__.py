"""Define report pages, and render them as HTML, PDF and terminal output, with figures."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.report.html import write_page as write_page

__getattr__, __dir__, __all__ = lazy(__name__)
