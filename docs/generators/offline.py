"""Search in pages that are opened from disk, as `site/index.html` is after `make docs`, and by whole questions.

Browsers do not let such pages fetch files or start workers from them. So the index and the worker's code become scripts: the theme loads
`search/search_index.js` by itself where the protocol is `file:`, and the worker starts from its text.

The theme searches for every word of a question, including "how", "do" and "my", and treats + and -
as operators. Questions of four or more words are therefore reduced to their meaningful words.
"""

import json
from pathlib import Path

from mkdocs.exceptions import PluginError

WORKER = "search/worker.js"
"""Loaded in the head of every page, ahead of the theme's own script."""
SCRIPT = """\
{
  const text = %s, idle = new Set("%s".split(" "));
  const local = location.protocol === "file:";
  const asked = words => {
    const all = words.split(/\\s+/).filter(Boolean);
    const plain = all.map(word => word.replace(/^[^\\p{L}\\p{N}"]+|[^\\p{L}\\p{N}"]+$/gu, ""));
    const kept = plain.filter(word => word && !idle.has(word.toLowerCase()));
    return all.length < 4 || kept.length < 1 ? words : kept.join(" ");
  };
  window.Worker = class extends Worker {
    constructor(url, options) {
      super(local ? URL.createObjectURL(new Blob([text], { type: "text/javascript" })) : url, options);
    }
    postMessage(message, ...more) {
      super.postMessage(typeof message?.data === "string" ? { ...message, data: asked(message.data) } : message, ...more);
    }
  };
}
"""
DIGITS = """
lunr.TokenSet.prototype.toString = function () {
  return this._str || [+this.final, ...Object.keys(this.edges).sort().map(label => label + ":" + this.edges[label].id)].join(" ");
};
"""
"""Put behind the worker's code: lunr 2.3.9 writes edges and numbers without anything between, and takes nodes with digits for each other.
Then it looks for words that no page has, and a search such as for "run" ends with an error, and finds nothing."""
IDLE = (
    "a about after all am an and any are as at be before between but by can could did do does for from get had has have how i"
    " if in into is it its made make many may me much my need no not of on one or our per put share should so some such take"
    " tell than that the their them then there these they this to under up us use using want was way we were what when where"
    " which who whom whose why will with without would you your"
)
"""Stop words of questions."""


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
    workers[0].write_text(workers[0].read_text(encoding="utf-8").removesuffix(DIGITS) + DIGITS, encoding="utf-8")
    (site / WORKER).write_text(SCRIPT % (json.dumps(workers[0].read_text(encoding="utf-8")), IDLE), encoding="utf-8")
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    (site / "search" / "search_index.js").write_text(f"var __index = {index};\n", encoding="utf-8")
