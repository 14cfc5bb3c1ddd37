"""Search in pages that are opened from disk, as `site/index.html` is after `make docs`.

Browsers do not let such pages fetch files or start workers from them. So the index and the worker's code become scripts: the theme loads
`search/search_index.js` by itself where the protocol is `file:`, and the worker starts from its text.
"""

import json
from pathlib import Path

from mkdocs.exceptions import PluginError

WORKER = "search/worker.js"
"""Loaded in the head of every page, ahead of the theme's own script."""
SCRIPT = """\
if (location.protocol === "file:") {
  const text = %s;
  window.Worker = class extends Worker {
    constructor() {
      super(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
    }
  };
}
"""


def on_config(config):
    """Name the script that the pages are to load; called by MkDocs."""
    config.extra["polyfills"] = [*config.extra.get("polyfills", []), WORKER]
    return config


def on_post_build(config, **_) -> None:
    """Write the scripts, when the index and the theme's files are there; called by MkDocs."""
    site = Path(config.site_dir)
    workers = list(site.glob("assets/javascripts/workers/search.*.js"))
    if len(workers) != 1:
        raise PluginError(f"the theme has {len(workers)} search workers, not one: docs/generators/offline.py does not know this version")
    (site / WORKER).write_text(SCRIPT % json.dumps(workers[0].read_text(encoding="utf-8")), encoding="utf-8")
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    (site / "search" / "search_index.js").write_text(f"var __index = {index};\n", encoding="utf-8")
