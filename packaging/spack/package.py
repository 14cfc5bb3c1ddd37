"""A Spack package of the source distribution that `make wheel` leaves in dist/, for a package repository of your own.

spack repo create spack-site site && mkdir -p spack-site/spack_repo/site/packages/walltime
cp packaging/spack/package.py spack-site/spack_repo/site/packages/walltime/
spack repo add spack-site/spack_repo/site
cd dist && spack install --no-checksum walltime

Spack's own packages of July 2026 have older versions of py-polars and py-typer, so your repository needs newer ones too: Parquet files with
metadata need Polars 1.30, and messages on wrong calls need `typer.TyperException` (Typer 0.27.2 and later). They lack Gymnasium, mcp and
cma, so there are no variants for those extras.
"""

from pathlib import Path

from spack.package import *
from spack_repo.builtin.build_systems.python import PythonPackage


class Walltime(PythonPackage):
    """Replays job logs of parallel machines under backfilling policies, predicts waits, and checks every schedule."""

    url = f"file://{Path.cwd()}/walltime-0.1.0.tar.gz"
    manual_download = True

    license("BSD-3-Clause")

    version("0.1.0")

    variant("batsim", default=False, description="Serve simulated machines by Batsim's protocol")
    variant("dask", default=False, description="Run campaigns on Dask clusters")
    variant("duckdb", default=False, description="Read tables of DuckDB")
    variant("pandas", default=False, description="Results as tables of pandas")

    depends_on("py-hatchling@1.27:", type="build")

    with default_args(type=("build", "run")):
        depends_on("python@3.11:")
        depends_on("py-typer@0.29:")  # the build makes the pages for man of the commands' declarations

    with default_args(type="run"):
        depends_on("py-numpy@2.0:")
        depends_on("py-numba@0.61:")
        depends_on("py-polars@1.30:")
        depends_on("py-rich@15.0:")
        depends_on("py-matplotlib@3.10:")
        depends_on("py-pooch@1.8:")
        depends_on("py-requests@2.32.2:")
        depends_on("py-scipy@1.14:")
        depends_on("py-tzdata@2024.1:")

        depends_on("py-pyzmq@26:", when="+batsim")
        depends_on("py-distributed@2025.1:", when="+dask")
        depends_on("py-dask-jobqueue@0.9:", when="+dask")
        depends_on("duckdb@1.1: +python", when="+duckdb")
        depends_on("py-pandas@2.2:", when="+pandas")
        depends_on("py-pyarrow@17:", when="+pandas")
