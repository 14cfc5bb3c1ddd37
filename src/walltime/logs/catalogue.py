"""The logs of the Parallel Workloads Archive that the papers and this project use, and where each is to be had."""

from __future__ import annotations

from dataclasses import dataclass

from walltime.errors import PolicyError

ARCHIVE = "https://www.cs.huji.ac.il/labs/parallel/workload"
"""Address of the Parallel Workloads Archive."""

ACKNOWLEDGE = (
    "Logs belong to the sites that recorded them, and are not to be redistributed. Whoever publishes results with one is asked "
    "to acknowledge the archive and the log's source."
)


@dataclass(frozen=True)
class CatalogueEntry:
    """One log: its short name, its newest recommended file, its machine, and how the papers used it."""

    name: str
    file: str
    folder: str
    procs: int
    used: str
    sha256: str | None = None
    """of the file as the archive stores it; None where it is not known, then the first download is recorded"""

    def address(self, archive: str = ARCHIVE) -> str:
        """Where the file is to be had."""
        return f"{archive.rstrip('/')}/{self.folder}/{self.file}"


CATALOGUE = (
    CatalogueEntry("KTH-SP2", "KTH-SP2-1996-2.1-cln.swf.gz", "l_kth_sp2", 100, "P1, P2, P3: 28,490 jobs on 100 processors"),
    CatalogueEntry("KTH-SP2-raw", "KTH-SP2-1996-2.swf.gz", "l_kth_sp2", 100, "P1, P2, P3: the log before its first 14 jobs were removed"),
    CatalogueEntry(
        "CTC-SP2",
        "CTC-SP2-1996-3.1-cln.swf.gz",
        "l_ctc_sp2",
        338,
        "P2: 79,296 jobs, P3: 77,222; both on 512 processors (use --procs 512)",
    ),
    CatalogueEntry("SDSC-SP2", "SDSC-SP2-1998-4.2-cln.swf.gz", "l_sdsc_sp2", 128, "P3: 59,725 jobs on 128 processors"),
    CatalogueEntry("SDSC-SP2-raw", "SDSC-SP2-1998-4.swf.gz", "l_sdsc_sp2", 128, "P2: 67,665 jobs on 128 processors, flurries included"),
    CatalogueEntry("SDSC-BLUE", "SDSC-BLUE-2000-4.2-cln.swf.gz", "l_sdsc_blue", 1152, "P3: 243,314 jobs on 1,152 processors"),
    CatalogueEntry("SDSC-Par95", "SDSC-Par-1995-3.1-cln.swf.gz", "l_sdsc_par", 416, "P2: with 1996, on 416 processors"),
    CatalogueEntry("SDSC-Par96", "SDSC-Par-1996-3.1-cln.swf.gz", "l_sdsc_par", 416, "P2: with 1995, on 416 processors"),
    CatalogueEntry("LANL-CM5", "LANL-CM5-1994-4.1-cln.swf.gz", "l_lanl_cm5", 1024, "P2: 201,387 jobs before cleaning, exact estimates"),
    CatalogueEntry("ANL-Intrepid", "ANL-Intrepid-2009-1.swf.gz", "l_anl_int", 163_840, "P4: its months January to September 2009"),
    CatalogueEntry("HPC2N", "HPC2N-2002-2.2-cln.swf.gz", "l_hpc2n", 240, "no paper here"),
    CatalogueEntry("CEA-Curie", "CEA-Curie-2011-2.1-cln.swf.gz", "l_cea_curie", 93_312, "no paper here"),
    CatalogueEntry("UniLu-Gaia", "UniLu-Gaia-2014-2.swf.gz", "l_unilu_gaia", 2004, "no paper here"),
)
"""Newest recommended files first under their plain names; `-raw` is the log before cleaning. The machine is the header's."""


def catalogue_entry(name: str) -> CatalogueEntry:
    """The entry of this name, or of this file; raises PolicyError naming the known ones.

    >>> catalogue_entry("kth-sp2").procs
    100
    """
    for entry in CATALOGUE:
        if name.lower() in (entry.name.lower(), entry.file.lower()):
            return entry
    raise PolicyError(f"no log {name!r} in the catalogue; known are {', '.join(entry.name for entry in CATALOGUE)}")
