"""A build hook of Hatchling: a wheel brings the pages for `man`, one for each command, into share/man/man1."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManPages(BuildHookInterface):
    """Write the pages for `man` into a temporary folder, and add them to the wheel; editable installations have none."""

    def initialize(self, version, build_data):
        """Called before the wheel is built."""
        if version == "editable":
            return
        self.folder = tempfile.TemporaryDirectory()
        path = {"PYTHONPATH": str(Path(self.root) / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "walltime.cli.man", self.folder.name, self.metadata.version]
        subprocess.run(command, env=os.environ | path, check=True)
        for page in sorted(Path(self.folder.name).iterdir()):
            build_data["shared_data"][str(page)] = f"share/man/man1/{page.name}"

    def finalize(self, version, build_data, artifact_path):
        """Called after the wheel was built."""
        if version != "editable":
            self.folder.cleanup()
