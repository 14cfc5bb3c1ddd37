"""The side-car beside a Slurm cluster: it sets TimeMin of waiting jobs, and gives back what backfill shortens."""

from importlib.resources import files

__all__ = ["installed_text"]


def installed_text(name: str) -> str:
    """One of the files for operators that lie beside these modules: `job_submit.lua`, `prolog.sh`, `alerts.yml`, ..."""
    return (files("walltime.slurm.sidecar") / name).read_text(encoding="utf-8")
