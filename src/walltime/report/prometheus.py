"""Write metrics in the text format of Prometheus, for the textfile collector of the node exporter."""

from collections.abc import Iterable, Sequence

from walltime.wording import sanitize


def label(**labels: str) -> str:
    r"""Return the labels of a metric's value in braces, or an empty string without labels.

    >>> label(user="ann", cause='say "a\\b"'), label()
    ('{user="ann",cause="say \\"a\\\\b\\""}', '')
    """
    pairs = (
        f'{name}="{sanitize(value).replace(chr(92), chr(92) * 2).replace(chr(34), chr(92) + chr(34))}"' for name, value in labels.items()
    )
    return f"{{{','.join(pairs)}}}" if labels else ""


def metrics_text(metrics: Iterable[tuple[str, str, Sequence[tuple[str, float | int | str]]]]) -> str:
    """Return gauges as text; each is a name (without the prefix `walltime_`), a description, and pairs of labels and value.

    >>> print(metrics_text([("jobs", "Jobs.", [("", 3)])]), end="")
    # HELP walltime_jobs Jobs.
    # TYPE walltime_jobs gauge
    walltime_jobs 3
    """
    lines = []
    for name, meaning, values in metrics:
        lines += [f"# HELP walltime_{name} {meaning}", f"# TYPE walltime_{name} gauge"]
        lines += [f"walltime_{name}{labels} {value}" for labels, value in values]
    return "\n".join(lines) + "\n"
