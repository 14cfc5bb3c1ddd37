"""For mkdocstrings: renders the examples in docstrings, which have no heading of their own, as code."""

import re

import griffe

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


class Examples(griffe.Extension):
    """Put each block of lines that begins with a prompt into a fence."""

    def on_instance(self, *, obj: griffe.Object, **_) -> None:
        """Change the docstring of one object; called by griffe."""
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", obj.docstring.value)
