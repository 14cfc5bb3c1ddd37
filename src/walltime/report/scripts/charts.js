// Line charts by uPlot: distributions as they were computed for the page, and the queue and the busy processors for any stretch of time.

const POINTS = 500; // intervals of the charts over time
const COLOURS = ["--blue", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]; // as in figures.py
const TIMES = [[1, "1 s"], [10, "10 s"], [60, "1 min"], [600, "10 min"], [HOUR, "1 h"], [10 * HOUR, "10 h"], [4 * DAY, "4 d"], [40 * DAY, "40 d"], [400 * DAY, "400 d"]];

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function axisLook(extra) {
  return {
    stroke: () => css("--ink"),
    grid: { stroke: () => css("--line"), width: 1 },
    ticks: { stroke: () => css("--line"), width: 1, size: 4 },
    font: "12px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif",
    labelSize: 20,
    filter: (_, splits) => splits,
    ...extra,
  };
}

// A line for each policy, told apart by colour and dashes like in the figures without scripts.
function linesOf(meta, show) {
  return meta.policies.map(({ name, colour: own, dash }) => ({
    label: name,
    stroke: () => (own.startsWith("--") ? css(own) : own),
    width: 1.8,
    dash,
    points: { show: false },
    value: (_, y) => (y === null || y === undefined ? "–" : show(y)),
  }));
}

function makeChart(holder, options, data) {
  const width = () => Math.max(holder.clientWidth, 200);
  const chart = new uPlot({ width: width(), legend: { live: true }, ...options }, data, holder);
  new ResizeObserver(() => {
    if (Math.abs(chart.width - width()) > 1) chart.setSize({ width: width(), height: options.height });
  }).observe(holder);
  steerByKeys(holder, chart);
  return chart;
}

// Left and right move the cursor from value to value, so that they can be read without a pointer.
function steerByKeys(holder, chart) {
  holder.tabIndex = 0;
  holder.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    event.preventDefault();
    const last = chart.data[0].length - 1;
    const now = chart.cursor.idx ?? (event.key === "ArrowRight" ? -1 : last + 1);
    const next = Math.min(Math.max(now + (event.key === "ArrowRight" ? 1 : -1) * (event.shiftKey ? 10 : 1), 0), last);
    const x = chart.valToPos(chart.data[0][next], "x");
    const y = chart.data.slice(1).find((values) => Number.isFinite(values[next]));
    chart.setCursor({ left: x, top: y ? chart.valToPos(y[next], "y") : 10 });
  });
}

function distribution(holder, meta, curve, ticks, showX, xLabel) {
  const lowest = Math.min(...curve.y.map((values) => values[0]));
  const bottom = lowest > 50 ? Math.min(10 * Math.max(Math.floor((lowest - 2) / 10), 0), 90) : 0;
  const range = [bottom, 100];
  const options = {
    height: 300,
    scales: { x: { time: false, distr: 3 }, y: { range: () => range } },
    axes: [
      axisLook({ label: xLabel, splits: (u) => ticks.map(([x]) => x).filter((x) => x >= u.scales.x.min && x <= u.scales.x.max), values: (_, at) => at.map((x) => showTick(ticks, x)), size: 28 }),
      axisLook({ size: 52, values: (_, at) => at.map((y) => `${y} %`) }),
    ],
    series: [{ label: xLabel, value: (_, x) => (x === null ? "–" : showX(x)) }, ...linesOf(meta, (y) => `${y.toFixed(1)} %`)],
    cursor: { drag: { x: true, y: false } },
  };
  return makeChart(holder, options, [curve.x, ...curve.y]);
}

const FEW = 60; // points that are drawn one by one

// A chart as the page describes it (walltime.report.page.Chart): over dates, or over durations.
function plainChart(holder, given, key) {
  const { names, lines, unit, form, most, marks, level } = given;
  const clock = given.clock && new Clock(given.clock);
  const show = { "%": (y) => `${y.toFixed(1)} %`, s: human, "": (y) => grouped(y) }[unit];
  const stack = form === "stack";
  const paths = { bars: () => uPlot.paths.bars({ size: [0.85, 100] }), line: () => undefined }[form]?.() ?? (form === "line" ? undefined : uPlot.paths.stepped({ align: 1 }));
  const order = names.map((_, k) => k);
  const sums = stack && lines.map((_, k) => given.x.map((_, i) => lines.slice(0, k + 1).reduce((sum, line) => sum + line[i], 0)));
  if (stack) order.reverse(); // the highest line is drawn first, and those below it cover its lower part
  const series = order.map((k) => {
    const own = given.colours[k] ?? COLOURS[k % COLOURS.length];
    const colour = () => (own.startsWith("--") ? css(own) : own);
    const filled = stack || form === "bars" ? { fill: colour, width: stack ? 0 : 1 } : { width: 1.8, dash: given.dashes[k % given.dashes.length] };
    const value = (_, y, __, i) => (y === null || y === undefined ? "–" : show(stack ? lines[k][i] : y));
    return { label: names[k], stroke: colour, paths, points: { show: form === "line" && clock && given.x.length < FEW }, value, ...filled };
  });
  const step = given.x[1] - given.x[0] || DAY;
  const padded = (low, high) => (clock && given.x.length < FEW ? [low - step / 2, high + step / 2] : [low, high]);
  const dates = {
    splits: (u, _, min, max) => (u.ticks = clock.ticks(min, max, Math.max(u.width / 85, 2))).map(({ time }) => time),
    values: (u) => u.ticks.map(({ label }) => label),
  };
  const durations = {
    splits: (u) => TIMES.map(([x]) => x).filter((x) => x >= u.scales.x.min && x <= u.scales.x.max),
    values: (_, at) => at.map((x) => showTick(TIMES, x)),
  };
  const short = { "%": (y) => `${y} %`, s: (y, gap) => sinceFirst(y, gap), "": grouped }[unit];
  const options = {
    height: { bars: 190, stack: 260, line: clock ? 150 : 260, steps: 170 }[form],
    scales: {
      x: { time: false, distr: clock ? 1 : 3, range: (u, low, high) => (low === given.x[0] ? padded(low, high) : [low, high]) },
      y: { range: (_, __, high) => [0, most ?? Math.max(high * 1.05, 1)] },
    },
    axes: [
      axisLook({ ...(clock ? dates : durations), size: 28 }),
      axisLook({ size: 64, incrs: unit === "s" ? STEPS : undefined, values: (_, at, __, ___, gap) => at.map((y) => short(y, gap)) }),
    ],
    series: [{ label: clock ? "time" : "less than", value: (_, x) => (x === null ? "–" : clock ? clock.text(x) : human(x)) }, ...series],
    cursor: { drag: { x: true, y: false }, sync: { key } },
    hooks: { draw: [(u) => drawMarks(u, marks, level)] },
  };
  return makeChart(holder, options, [given.x, ...order.map((k) => (stack ? sums[k] : lines[k]))]);
}

// Vertical lines at times and a horizontal one at a level, with their labels.
function drawMarks({ ctx, bbox, valToPos, scales }, marks, level) {
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = css("--ink");
  ctx.lineWidth = ratio;
  ctx.font = `${12 * ratio}px system-ui, sans-serif`;
  const line = (...ends) => (ctx.beginPath(), ctx.moveTo(ends[0], ends[1]), ctx.lineTo(ends[2], ends[3]), ctx.stroke());
  for (const [time, label] of marks.filter(([time]) => time >= scales.x.min && time <= scales.x.max)) {
    const x = valToPos(time, "x", true);
    line(x, bbox.top, x, bbox.top + bbox.height);
    ctx.textAlign = x > bbox.left + bbox.width / 2 ? "right" : "left";
    ctx.fillText(label, x + (ctx.textAlign === "right" ? -4 : 4) * ratio, bbox.top - 5 * ratio);
  }
  if (level) {
    const y = valToPos(level[0], "y", true);
    ctx.setLineDash([5 * ratio, 3 * ratio]);
    line(bbox.left, y, bbox.left + bbox.width, y);
  }
  ctx.restore();
}

// The texts of a figure's rows, under the pointer or by the arrows up and down.
function readRows(figure, texts) {
  const tip = make("div", { class: "tip", role: "status", hidden: "" });
  document.body.append(tip);
  let now = -1;
  const panel = () => [...figure.querySelectorAll('[id$="patch_2"]')].map((one) => one.getBoundingClientRect()).find(({ height }) => height);
  const show = (row, x, y) => {
    now = row;
    tip.hidden = !(row >= 0 && row < texts.length);
    if (tip.hidden) return;
    tip.replaceChildren(...texts[row].split("\n").map((line) => make("div", {}, line)));
    placeTip(tip, x, y);
  };
  figure.addEventListener("pointermove", ({ clientX, clientY }) => {
    const { top, height } = panel();
    show(Math.floor(((clientY - top) / height) * texts.length), clientX, clientY);
  });
  figure.addEventListener("pointerleave", () => show(-1));
  figure.tabIndex = 0;
  figure.addEventListener("blur", () => show(-1));
  figure.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    const { left, top, height } = panel();
    const row = Math.min(Math.max(now + (event.key === "ArrowDown" ? 1 : -1), 0), texts.length - 1);
    show(row, left + 20, top + ((row + 0.5) / texts.length) * height);
  });
}

function showTick(ticks, x) {
  const found = ticks.find(([at]) => Math.abs(at / x - 1) < 1e-6);
  return found ? found[1] : "";
}

// Charts of the queue and the busy processors over the stretch of time that the view shows.
class OverTime {
  constructor(meta, jobs, view, clock) {
    Object.assign(this, { meta, jobs, view, clock });
    this.flows = [];
    this.charts = [];
    this.waiting = false;
    view.listeners.push(() => this.redraw());
  }

  // `policies`: by index, those that are decoded; others have no line yet.
  add(index, policy) {
    const submitted = policy.submit === this.jobs.submit ? (this.all ||= new Arrivals(policy.submit)) : new Arrivals(policy.submit);
    this.flows[index] = {
      queue: [submitted, new Arrivals(policy.start)],
      busy: [new Arrivals(policy.start, this.jobs.procs), new Arrivals(policy.end, this.jobs.procs)],
    };
  }

  edges() {
    const step = (this.view.end - this.view.begin) / POINTS;
    return Array.from({ length: POINTS + 1 }, (_, k) => this.view.begin + k * step);
  }

  data(what, scale) {
    const edges = this.edges();
    const middles = edges.slice(1).map((time, k) => (time + edges[k]) / 2);
    const lines = this.meta.policies.map((_, k) => {
      const flow = this.flows[k];
      return flow ? means(...flow[what], edges).map((value) => Math.max(value, 0) * scale) : middles.map(() => null);
    });
    return [middles, ...lines];
  }

  // `what`: queue or busy; `scale`: factor of the values; `range`, `distr`: of the values' axis, and `y` its other options.
  chart(holder, what, { height, scale, distr, range, show, y }) {
    const { clock, view } = this;
    const options = {
      height,
      scales: { x: { time: false, range: () => [view.begin, view.end] }, y: { distr, asinh: 1, range } },
      axes: [
        axisLook({
          splits: (u, _, min, max) => (u.ticks = clock.ticks(min, max, Math.max(u.width / 85, 2))).map(({ time }) => time),
          values: (u) => u.ticks.map(({ label }) => label),
          size: 28,
        }),
        axisLook({ size: 58, ...y }),
      ],
      series: [{ label: "time", value: (_, x) => (x === null ? "–" : clock.text(x)) }, ...linesOf(this.meta, show)],
      cursor: { drag: { x: true, y: false, setScale: false }, sync: { key: "time" }, bind: { dblclick: () => () => view.whole() } },
      hooks: {
        setSelect: [
          (u) => {
            const { left, width } = u.select;
            if (width < 4) return;
            const [begin, end] = [u.posToVal(left, "x"), u.posToVal(left + width, "x")];
            u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            view.set(begin, end);
          },
        ],
      },
    };
    this.charts.push([makeChart(holder, options, this.data(what, scale)), what, scale]);
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      for (const [chart, what, scale] of this.charts) chart.setData(this.data(what, scale));
    });
  }
}
