// The page comes alive: charts, the Gantt charts, the search for a job, the choice of policies. It shows the same without scripts.

const MEANINGS = {
  immediate: "started on arrival",
  reserved: "started in turn after a wait",
  backfilled: "backfilled",
  ran: "already running",
  before: "earlier jobs",
  later: "later jobs",
  itself: "this job",
};

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const button = (label, onclick, name = label) => make("button", { type: "button", "aria-label": name, title: name, onclick }, label);
const nextFrame = () => new Promise((resolve) => setTimeout(resolve));

// Places a tip next to a point of the window, such that it can be seen.
function placeTip(tip, x, y) {
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(Math.min(x + 14, window.innerWidth - width - 8), 4)}px`;
  tip.style.top = `${y + 18 + height > window.innerHeight ? y - height - 12 : y + 18}px`;
}

class Page {
  constructor(meta, jobs) {
    Object.assign(this, { meta, jobs });
    this.clock = new Clock(meta);
    this.view = new View(meta.begin, meta.end);
    this.choice = new Choice(meta.policies.map(({ name }) => name));
    this.policies = [];
    this.gantts = [];
    this.tip = make("div", { class: "tip", "aria-hidden": "true", hidden: "" });
    document.body.append(this.tip);
    this.overTime = new OverTime(meta, jobs, this.view, this.clock);
  }

  async start() {
    const { meta } = this;
    if (meta.policies.length > 1) this.choiceOfPolicies();
    this.controls();
    for (let k = 0; k < meta.policies.length; k++) {
      const policy = finish(await readBlock(`live-policy-${k}`, meta.policies[k].layout), this.jobs);
      this.policies[k] = policy;
      this.addGantt(k, policy);
      if (k === 0) document.documentElement.classList.add("live");
      await nextFrame(); // the first chart is drawn before the next one is read
    }
    for (const [k, policy] of this.policies.entries()) {
      this.overTime.add(k, policy);
      await nextFrame();
    }
    this.charts();
    this.choice.listeners.push(() => this.applyChoice());
    this.jobLinks();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    window.addEventListener("hashchange", () => this.fromAddress());
    this.fromAddress();
  }

  redraw() {
    for (const gantt of this.gantts) gantt.redraw();
    for (const chart of this.lines) chart.redraw(false, true);
  }

  charts() {
    const { meta, overTime } = this;
    const { wait, slowdown } = meta.curves;
    const ratios = [1, 10, 100, 1e3, 1e4, 1e5, 1e6].map((x) => [x, grouped(x)]);
    const at = (id) => document.getElementById(id);
    this.lines = [
      distribution(at("live-wait"), meta, wait, TIMES, human, "wait less than"),
      distribution(at("live-slowdown"), meta, slowdown, ratios, (x) => x.toPrecision(3), "bounded slowdown at most"),
    ];
    const powers = (_, __, low, high) => [0, 1, 10, 100, 1e3, 1e4, 1e5, 1e6].filter((y) => y <= high);
    const queue = { height: 260, scale: 1, distr: 4, range: (_, low, high) => [0, Math.max(high * 1.2, 2)], show: (y) => y.toFixed(y < 10 ? 1 : 0) };
    overTime.chart(at("live-queue"), "queue", { ...queue, y: { splits: powers, values: (_, marks) => marks.map(grouped) } });
    const busy = { height: 200, scale: 100 / meta.machine, distr: 1, range: () => [0, 100], show: (y) => `${y.toFixed(1)} %` };
    overTime.chart(at("live-busy"), "busy", { ...busy, y: { values: (_, marks) => marks.map((y) => `${y} %`) } });
    this.lines.push(...overTime.charts.map(([chart]) => chart));
  }

  // ------------------------------------------------------------ policies

  choiceOfPolicies() {
    const boxes = this.meta.policies.map(({ name }, k) => {
      const box = make("input", { type: "checkbox", checked: "" });
      box.addEventListener("change", () => {
        this.choice.shown[k] = box.checked;
        if (!this.choice.shown.some(Boolean)) box.checked = this.choice.shown[k] = true; // one stays
        this.choice.apply();
      });
      return make("label", {}, box, ` ${name}`);
    });
    const base = make("select", { id: "live-base" }, ...this.meta.policies.map(({ name }, k) => make("option", { value: k }, name)));
    base.addEventListener("change", () => {
      this.choice.base = Number(base.value);
      this.choice.apply();
    });
    const legend = make("legend", {}, "Policies shown");
    const compared = make("label", { for: "live-base" }, "compared with ", base);
    document.getElementById("live-choice").append(make("fieldset", {}, legend, ...boxes, compared));
  }

  applyChoice() {
    for (const chart of this.lines) {
      this.choice.shown.forEach((show, k) => {
        if (chart.series[k + 1].show !== show) chart.setSeries(k + 1, { show });
      });
    }
    for (const gantt of this.gantts) gantt.redraw();
    if (this.selected >= 0) this.tellExplanation(this.selected);
  }

  // ------------------------------------------------------------ the Gantt charts

  controls() {
    const { view } = this;
    const range = make("span", { class: "range", "aria-live": "polite" });
    const shown = () => (range.textContent = `${this.clock.text(view.begin)} to ${this.clock.text(view.end)} (${human(view.end - view.begin)})`);
    view.listeners.push(shown);
    shown();
    this.key = make("span", { class: "keys" });
    this.showKey(KINDS);
    const number = make("input", { id: "live-job", type: "text", inputmode: "numeric", autocomplete: "off", size: "9" });
    const find = (event) => {
      event.preventDefault();
      this.find(number.value.trim());
    };
    const form = make("form", { onsubmit: find }, make("label", { for: "live-job" }, "Job "), number, make("button", { type: "submit" }, "Find"));
    const steps = [
      button("◀", () => view.pan(-0.5), "Earlier"),
      button("▶", () => view.pan(0.5), "Later"),
      button("+", () => view.zoom(0.5), "Zoom in"),
      button("−", () => view.zoom(2), "Zoom out"),
      button("Whole", () => view.whole(), "Show the whole schedule"),
    ];
    this.note = make("p", { class: "note", role: "status" });
    document.getElementById("live-controls").append(make("div", { class: "bar-of-buttons" }, ...steps, form), range, this.key, this.note);
  }

  showKey(names) {
    this.key.replaceChildren(...names.map((name) => make("span", {}, make("i", { class: `key ${name}` }), MEANINGS[name])));
  }

  addGantt(k, policy) {
    const { name } = this.meta.policies[k];
    const canvas = make("canvas", {
      tabindex: "0",
      role: "application",
      "aria-roledescription": "Gantt chart",
      "aria-label": `Gantt chart of the whole schedule under ${name}`,
      "aria-describedby": "live-keys",
    });
    const figure = make("figure", { class: "gantt", "data-p": k }, make("figcaption", {}, name), canvas);
    document.getElementById("live-gantts").append(figure);
    const gantt = new Gantt(canvas, policy, this.jobs, this.view, this.clock, this.meta.machine);
    gantt.index = k;
    this.gantts.push(gantt);
    steer(gantt, this.view, { hover: (...found) => this.hover(...found), choose: (...found) => this.choose(...found) });
    gantt.redraw();
  }

  hover(gantt, event) {
    const place = event && gantt.at(event);
    const job = place ? gantt.jobAt(place) : -1;
    if (job !== gantt.hovered) {
      gantt.hovered = job;
      gantt.canvas.style.cursor = job < 0 ? "grab" : "pointer";
      gantt.redraw();
      this.tip.hidden = job < 0;
      if (job >= 0) this.tip.replaceChildren(...this.brief(job, gantt.policy).map((line) => make("div", {}, line)));
    }
    if (job < 0) return;
    placeTip(this.tip, event.clientX, event.clientY);
  }

  // Whose job it is, by name where the log has names.
  ofUser(job) {
    const user = this.jobs.user ? this.jobs.user[job] : -1;
    return user < 0 ? "" : ` of user ${this.meta.users[user - 1] ?? user}`;
  }

  brief(job, { wait, submit, start, runtime, kind }) {
    const { jobs, clock } = this;
    return [
      `Job ${jobs.id[job]}${this.ofUser(job)}`,
      `${plural(jobs.procs[job], "processor")}, requested ${human(jobs.requested[job])}, ran ${human(runtime[job])}`,
      `submitted ${clock.text(submit[job])}`,
      wait[job] ? `waited ${human(wait[job])}, started ${clock.text(start[job])}` : "did not wait",
      MEANINGS[KINDS[kind[job]]],
    ];
  }

  // ------------------------------------------------------------ one job

  find(text) {
    const number = Number(text);
    const job = text && Number.isInteger(number) ? this.jobs.id.indexOf(number) : -1;
    if (job < 0) {
      const ids = this.jobs.id;
      const [low, high] = ids.reduce(([a, b], id) => [Math.min(a, id), Math.max(b, id)], [Infinity, -Infinity]);
      this.note.textContent = text ? `There is no job ${text}; job numbers range from ${low} to ${high}.` : "Enter the number of a job.";
      return;
    }
    this.show(job);
  }

  // The job of the address; in a frame of another page, the address of the schedules shows them alone.
  fromAddress() {
    document.documentElement.classList.toggle("alone", location.hash === "#live-gantts" && window.parent !== window);
    const found = location.hash.match(/^#job=(\d+)$/);
    if (found && Number(found[1]) !== this.jobs.id[this.selected]) this.find(found[1]);
  }

  // Look at a job: its wait fills the middle of the drawings.
  show(job) {
    const shown = this.policies.filter((_, k) => this.choice.shown[k]);
    const begin = Math.min(...shown.map(({ submit }) => submit[job]));
    const end = Math.max(...shown.map(({ end: ends }) => ends[job]));
    const around = Math.max((end - begin) * 0.2, 300);
    this.choose(job);
    this.view.set(begin - around, end + around);
    document.getElementById("live-gantts").scrollIntoView({ block: "nearest" });
    const explanation = document.getElementById("live-explanation");
    const toExplanation = make("button", { type: "button", class: "link", onclick: () => (explanation.scrollIntoView(), explanation.focus({ preventScroll: true })) }, "its explanation");
    this.note.replaceChildren(`Job ${this.jobs.id[job]} is in the middle; `, toExplanation, " is below the charts.");
  }

  // A job that was chosen elsewhere on the page, under the policy it was listed with. Whoever uses the keyboard goes on in that chart;
  // for others it does not take the focus, since a wheel over it would zoom.
  visit(job, k, byKeyboard) {
    if (k !== undefined && this.choice.shown[k]) this.focus = k;
    this.show(job);
    const first = this.choice.shown.indexOf(true);
    if (byKeyboard) this.gantts[this.choice.shown[this.focus] ? this.focus : first].canvas.focus({ preventScroll: true });
  }

  choose(job, gantt) {
    this.selected = job;
    this.note.textContent = "";
    if (gantt) this.focus = gantt.index;
    for (const one of this.gantts) one.select(job);
    this.showKey(job < 0 ? KINDS : ROLES);
    if (job < 0) document.getElementById("live-explanation").replaceChildren();
    else this.tellExplanation(job);
    history.replaceState(null, "", job < 0 ? "#" : `#job=${this.jobs.id[job]}`);
  }

  tellExplanation(job) {
    const { jobs, meta, clock } = this;
    const shown = meta.policies.map((_, k) => k).filter((k) => this.choice.shown[k]);
    const found = new Map(shown.map((k) => [k, factsOf(job, this.policies[k], jobs, meta.machine)]));
    const focus = found.has(this.focus) ? this.focus : shown[0];
    const policy = this.policies[focus];
    const heading = make("h3", {}, `Job ${jobs.id[job]}${this.ofUser(job)}`);
    const asked = `It requested ${jobs.procs[job].toLocaleString("en-US")} of ${plural(meta.machine, "processor")} for ${human(jobs.requested[job])}, and ran for ${human(policy.runtime[job])}. It was submitted at ${clock.text(policy.submit[job])}.`;
    const sentences = tell(job, found.get(focus), jobs, clock).join(" ");
    const explanation = [heading, make("p", {}, asked), make("p", {}, make("strong", {}, `Under ${meta.policies[focus].name}: `), sentences)];
    const overtook = found.get(focus).overtook;
    if (overtook.length) {
      const work = (i) => jobs.procs[i] * policy.runtime[i];
      const largest = [...overtook].sort((a, b) => work(b) - work(a)).slice(0, 8);
      const links = largest.flatMap((i, k) => [k ? ", " : "", this.link(i)]);
      explanation.push(make("p", {}, `${overtook.length > 8 ? "Largest jobs that overtook it" : "Overtaken by"}: `, ...links, "."));
    }
    if (shown.length > 1) explanation.push(this.comparison(job, found));
    const { command } = meta.policies[focus];
    if (command) explanation.push(make("p", { class: "note" }, "For its reservations, and the changes that would have let it start sooner, run:"), make("pre", { tabindex: "0" }, `${command} --job ${jobs.id[job]}`));
    document.getElementById("live-explanation").replaceChildren(...explanation, button("Close", () => this.choose(-1)));
  }

  comparison(job, found) {
    const head = ["policy", "wait", "started", "kind of start", "jobs ahead", "overtaken by"].map((name) => make("th", { scope: "col" }, name));
    const rows = [...found].map(([k, facts]) => {
      const cells = [human(facts.wait), this.clock.text(facts.start), facts.kind, grouped(facts.ahead), grouped(facts.overtook.length)];
      return make("tr", {}, make("th", { scope: "row" }, this.meta.policies[k].name), ...cells.map((cell) => make("td", {}, cell)));
    });
    const table = make("table", { class: "words" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
    return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Job ${this.jobs.id[job]} under every policy` }, table);
  }

  link(job, k) {
    const id = this.jobs.id[job];
    const onclick = (event) => this.visit(job, k, event.detail === 0);
    return make("button", { type: "button", class: "link", "aria-label": `Show job ${id}`, onclick }, String(id));
  }

  // Numbers of jobs elsewhere on the page become links to their explanations.
  jobLinks() {
    for (const element of document.querySelectorAll("[data-job]")) {
      const job = this.jobs.id.indexOf(Number(element.dataset.job));
      const row = element.closest("[data-p]");
      if (job >= 0) element.replaceChildren(this.link(job, row ? Number(row.dataset.p) : undefined));
    }
  }
}

async function begin() {
  for (const table of document.querySelectorAll("table")) {
    sortable(table);
    copyable(table);
  }
  const meta = document.getElementById("live-meta");
  if (!meta) plainCharts();
  if (!meta || typeof DecompressionStream === "undefined") return;
  const found = JSON.parse(meta.textContent);
  const page = new Page(found, await readBlock("live-jobs", found.layout));
  await page.start();
  document.documentElement.dataset.live = "ready";
}

// The charts of a page without schedules. They replace the figures first, so that they have a width.
function plainCharts() {
  const holders = [...document.querySelectorAll("div.chart")];
  if (holders.length) document.documentElement.classList.add("live");
  const charts = holders.map((holder) => {
    const given = JSON.parse(holder.firstElementChild.textContent);
    return plainChart(holder, given, `${given.x[0]} to ${given.x.at(-1)}`);
  });
  const rows = [...document.querySelectorAll("script.rows")];
  for (const one of rows) readRows(one.closest("figure"), JSON.parse(one.textContent));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach((chart) => chart.redraw(false, true)));
  if (charts.length || rows.length) document.documentElement.dataset.live = "ready";
}

begin();
