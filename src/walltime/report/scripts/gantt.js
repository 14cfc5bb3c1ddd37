// The Gantt chart of one whole schedule. Each pixel shows the average over what it covers, so that a busy year looks as busy as it was;
// zoomed in, jobs become rectangles with edges and numbers.

const MARGIN = { left: 58, right: 8, top: 4, bottom: 24 };
const KINDS = ["immediate", "reserved", "backfilled"]; // as in the column `kind`
const ROLES = ["ran", "before", "later", "itself"]; // who a job is, seen from the one that is looked at

class Gantt {
  constructor(canvas, policy, jobs, view, clock, machine) {
    Object.assign(this, { canvas, policy, jobs, view, clock, machine });
    this.selected = -1;
    this.hovered = -1;
    this.classes = policy.kind;
    this.names = KINDS;
    this.waiting = false;
    this.seen = true;
    new ResizeObserver(() => this.redraw()).observe(canvas);
    new IntersectionObserver(([entry]) => {
      this.seen = entry.isIntersecting;
      if (this.seen && this.stale) this.redraw();
    }).observe(canvas);
    view.listeners.push(() => this.redraw());
  }

  // Draw before the next frame, once, and only what can be seen.
  redraw() {
    this.stale = true;
    if (this.waiting || !this.seen) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  // Show who each job is, seen from one job: whether it ran already, was ahead, or came later. -1 for the kinds of start.
  select(job) {
    this.selected = job;
    this.names = job < 0 ? KINDS : ROLES;
    this.classes = job < 0 ? this.policy.kind : rolesFor(job, this.policy);
    this.redraw();
  }

  size() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const { clientWidth, clientHeight } = this.canvas;
    const width = Math.max(Math.round(clientWidth * ratio), 1);
    const height = Math.max(Math.round(clientHeight * ratio), 1);
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    const box = { x: MARGIN.left * ratio, y: MARGIN.top * ratio };
    box.width = Math.max(Math.round(width - (MARGIN.left + MARGIN.right) * ratio), 1);
    box.height = Math.max(Math.round(height - (MARGIN.top + MARGIN.bottom) * ratio), 1);
    return { ratio, box };
  }

  draw() {
    const begin = performance.now();
    const { ratio, box } = this.size();
    const context = this.canvas.getContext("2d");
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    const labels = this.paint(context, box, ratio);
    this.axes(context, box, ratio);
    this.outline(context, box, ratio);
    this.label(context, labels, ratio);
    this.stale = false;
    this.canvas.dataset.milliseconds = (performance.now() - begin).toFixed(1); // these two are for tests
    this.canvas.dataset.view = `${this.view.begin} ${this.view.end}`;
  }

  // Cover every pixel by its share of each class of jobs, mix the colours, and return the rectangles that have room for a number.
  paint(context, box, ratio) {
    const { width, height } = box;
    const size = width * height;
    if (!this.cover || this.cover[0].length !== size) {
      this.cover = ROLES.map(() => new Float32Array(size));
      this.edges = new Uint8Array(size);
      this.image = context.createImageData(width, height);
    }
    for (const one of this.cover) one.fill(0);
    this.edges.fill(0);
    const { begin, end } = this.view;
    const { stripJob, stripFirst, stripCount, start, end: ends, lastEnd } = this.policy;
    const perSecond = width / (end - begin);
    const perProcessor = height / this.machine;
    const labels = [];
    for (let block = 0; block < lastEnd.length; block++) {
      const first = block * STRIPS;
      if (start[stripJob[first]] >= end) break;
      if (lastEnd[block] <= begin) continue;
      const last = Math.min(first + STRIPS, stripJob.length);
      for (let k = first; k < last; k++) {
        const job = stripJob[k];
        if (ends[job] <= begin || start[job] >= end) continue;
        const left = Math.max((start[job] - begin) * perSecond, 0);
        const right = Math.min((ends[job] - begin) * perSecond, width);
        const bottom = height - stripFirst[k] * perProcessor;
        const top = height - (stripFirst[k] + stripCount[k]) * perProcessor;
        fill(this.cover[this.classes[job]], width, left, right, Math.max(top, 0), Math.min(bottom, height));
        if (right - left >= 3 && bottom - top >= 3) edge(this.edges, width, height, left, right, top, bottom);
        if (right - left >= 44 * ratio && bottom - top >= 12 * ratio && labels.length < 600) {
          labels.push([job, box.x + (left + right) / 2, box.y + (top + bottom) / 2]);
        }
      }
    }
    this.mix(width, height);
    context.putImageData(this.image, box.x, box.y);
    return labels;
  }

  mix(width, height) {
    const paper = colour("--paper");
    const ink = colour("--ink");
    const colours = this.names.map((name) => colour(`--${name}`));
    const covers = this.cover.slice(0, colours.length);
    const { data } = this.image;
    for (let i = 0, at = 0; i < width * height; i++, at += 4) {
      let red = 0;
      let green = 0;
      let blue = 0;
      let free = 1;
      for (let c = 0; c < covers.length; c++) {
        const share = covers[c][i];
        if (share > 0) {
          red += share * colours[c][0];
          green += share * colours[c][1];
          blue += share * colours[c][2];
          free -= share;
        }
      }
      free = Math.max(free, 0);
      const line = this.edges[i] ? 0.4 : 0;
      data[at] = (1 - line) * (red + free * paper[0]) + line * ink[0];
      data[at + 1] = (1 - line) * (green + free * paper[1]) + line * ink[1];
      data[at + 2] = (1 - line) * (blue + free * paper[2]) + line * ink[2];
      data[at + 3] = 255;
    }
  }

  axes(context, box, ratio) {
    const ink = css("--ink");
    const soft = css("--soft");
    context.font = `${12 * ratio}px system-ui, sans-serif`;
    context.strokeStyle = css("--line");
    context.lineWidth = ratio;
    context.strokeRect(box.x - 0.5, box.y - 0.5, box.width + 1, box.height + 1);
    context.fillStyle = soft;
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const processors of roundNumbers(this.machine, 5)) {
      const y = box.y + box.height * (1 - processors / this.machine);
      context.fillText(grouped(processors), box.x - 6 * ratio, Math.min(Math.max(y, box.y + 6 * ratio), box.y + box.height - 5 * ratio));
    }
    context.textAlign = "center";
    context.textBaseline = "top";
    context.fillStyle = ink;
    let free = 0;
    for (const { time, label } of this.clock.ticks(this.view.begin, this.view.end, Math.max(box.width / ratio / 75, 2))) {
      const x = box.x + (box.width * (time - this.view.begin)) / (this.view.end - this.view.begin);
      context.fillRect(x, box.y + box.height, ratio, 4 * ratio);
      const half = context.measureText(label).width / 2;
      if (x - half < free || x + half > this.canvas.width) continue;
      context.fillText(label, x, box.y + box.height + 6 * ratio);
      free = x + half + 4 * ratio;
    }
  }

  // The job that is looked at: its rectangles, and its wait as a line from the submission to the start.
  outline(context, box, ratio) {
    const x = (time) => box.x + (box.width * (time - this.view.begin)) / (this.view.end - this.view.begin);
    const y = (processor) => box.y + box.height * (1 - processor / this.machine);
    context.save();
    context.beginPath();
    context.rect(box.x, box.y, box.width, box.height);
    context.clip();
    for (const job of [this.hovered, this.selected]) {
      if (job < 0) continue;
      const { start, end, submit, stripJob, stripFirst, stripCount, firstStrip } = this.policy;
      context.strokeStyle = css("--ink");
      context.lineWidth = (job === this.selected ? 2.5 : 1.5) * ratio;
      let middle = box.y + box.height / 2;
      for (let k = firstStrip[job]; k >= 0 && k < stripJob.length && stripJob[k] === job; k++) {
        const top = y(stripFirst[k] + stripCount[k]);
        const height = Math.max(y(stripFirst[k]) - top, 2);
        context.strokeRect(x(start[job]), top, Math.max(x(end[job]) - x(start[job]), 2), height);
        if (k === firstStrip[job]) middle = top + height / 2;
      }
      context.setLineDash([6 * ratio, 4 * ratio]);
      context.beginPath();
      context.moveTo(x(submit[job]), middle);
      context.lineTo(x(start[job]), middle);
      context.stroke();
      context.setLineDash([]);
      if (job === this.selected) context.fillRect(x(submit[job]) - ratio, box.y, 2 * ratio, box.height);
    }
    context.restore();
  }

  label(context, labels, ratio) {
    context.font = `${11 * ratio}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const inks = this.names.map((name) => css(`--on-${name}`));
    for (const [job, x, y] of labels) {
      context.fillStyle = inks[this.classes[job]];
      context.fillText(String(this.jobs.id[job]), x, y);
    }
  }

  // The time and the processor under a point of the window; null outside the drawing.
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = (event.clientX - box.left - MARGIN.left) / (box.width - MARGIN.left - MARGIN.right);
    const y = (event.clientY - box.top - MARGIN.top) / (box.height - MARGIN.top - MARGIN.bottom);
    if (x < 0 || x >= 1 || y < 0 || y >= 1) return null;
    return { time: this.view.begin + x * (this.view.end - this.view.begin), processor: Math.floor((1 - y) * this.machine) };
  }

  // The job that has this processor at this time, or -1. The nearest one within two pixels, so that narrow jobs can be pointed at.
  jobAt({ time, processor }) {
    const slack = (2 * (this.view.end - this.view.begin)) / Math.max(this.canvas.clientWidth, 1);
    const { stripJob, stripFirst, stripCount, start, end, lastEnd } = this.policy;
    let found = -1;
    let distance = slack;
    for (let block = 0; block < lastEnd.length; block++) {
      const first = block * STRIPS;
      if (start[stripJob[first]] > time + slack) break;
      if (lastEnd[block] < time - slack) continue;
      for (let k = first; k < Math.min(first + STRIPS, stripJob.length); k++) {
        if (processor < stripFirst[k] || processor >= stripFirst[k] + stripCount[k]) continue;
        const job = stripJob[k];
        const away = Math.max(start[job] - time, time - end[job], 0);
        if (away < distance || (away === 0 && distance === 0)) {
          found = job;
          distance = away;
        }
      }
    }
    return found;
  }
}

// Add to every pixel the share of it that a rectangle covers.
function fill(cover, width, left, right, top, bottom) {
  const firstColumn = Math.floor(left);
  const lastColumn = Math.min(Math.floor(right), width - 1);
  for (let row = Math.floor(top); row < bottom; row++) {
    const high = Math.min(bottom, row + 1) - Math.max(top, row);
    const at = row * width;
    if (firstColumn === lastColumn) {
      cover[at + firstColumn] += high * (right - left);
      continue;
    }
    cover[at + firstColumn] += high * (firstColumn + 1 - left);
    for (let column = firstColumn + 1; column < lastColumn; column++) cover[at + column] += high;
    cover[at + lastColumn] += high * (right - lastColumn);
  }
}

// Mark the pixels at the left and the upper edge of a rectangle.
function edge(edges, width, height, left, right, top, bottom) {
  const firstColumn = Math.floor(left);
  const firstRow = Math.max(Math.floor(top), 0);
  const lastRow = Math.min(Math.floor(bottom), height - 1);
  for (let row = firstRow; row <= lastRow; row++) edges[row * width + firstColumn] = 1;
  edges.fill(1, firstRow * width + firstColumn, firstRow * width + Math.min(Math.floor(right), width - 1) + 1);
}

// About so many round numbers from 0 to the greatest, with the ends.
function roundNumbers(greatest, count) {
  const rough = greatest / count;
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => greatest / s <= count) || 1;
  const numbers = [];
  for (let n = 0; n <= greatest; n += step) numbers.push(n);
  return numbers;
}


// A colour of the style sheet as red, green, blue.
function colour(name) {
  const digits = css(name).replace("#", "");
  return [0, 2, 4].map((k) => parseInt(digits.slice(k, k + 2), 16));
}
