"""The side-car of a Slurm cluster: it sets TimeMin of waiting jobs, and raises limits that backfill has shortened."""

from importlib.resources import files

__all__ = ["installed_text"]


def installed_text(name: str) -> str:
    """Return one of the files for operators in this folder: `job_submit.lua`, `prolog.sh`, `alerts.yml`, ..."""
    return (files("walltime.slurm.sidecar") / name).read_text(encoding="utf-8")
