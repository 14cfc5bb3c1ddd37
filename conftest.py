"""Keeps pytest from importing the modules of src/ that have no examples, which would take each worker seconds."""

from pathlib import Path

SOURCES = Path(__file__).parent / "src"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Return True for a module without examples, and None, which leaves the choice to others, for all else."""
    without = collection_path.suffix == ".py" and collection_path.is_relative_to(SOURCES) and b">>>" not in collection_path.read_bytes()
    return True if without else None
