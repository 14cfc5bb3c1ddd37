// The columns of jobs that the page carries: base64 of deflated int32 columns, each as four planes of bytes (live.py writes them).

async function readBlock(id, layout) {
  const text = atob(document.getElementById(id).textContent.trim());
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const columns = {};
  let from = 0;
  for (const [name, length, isDelta] of layout) {
    columns[name] = readColumn(bytes.subarray(from, from + 4 * length), length, isDelta);
    from += 4 * length;
  }
  return columns;
}

function readColumn(planes, length, isDelta) {
  const values = new Int32Array(length);
  let previous = 0;
  for (let i = 0; i < length; i++) {
    const zigzag = planes[i] | (planes[length + i] << 8) | (planes[2 * length + i] << 16) | (planes[3 * length + i] << 24);
    const value = (zigzag >>> 1) ^ -(zigzag & 1);
    previous = isDelta ? (previous + value) | 0 : value;
    values[i] = previous;
  }
  return values;
}

// Adds what the drawings need to a policy's columns: starts, ends, and for each block of strips when the last of them ends.
const STRIPS = 256;

function finish(policy, jobs) {
  const count = jobs.id.length;
  policy.submit = policy.submit || jobs.submit;
  policy.runtime = policy.runtime || jobs.runtime;
  policy.start = new Int32Array(count);
  policy.end = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    policy.start[i] = policy.submit[i] + policy.wait[i];
    policy.end[i] = policy.start[i] + policy.runtime[i];
  }
  const strips = policy.stripJob.length;
  policy.lastEnd = new Int32Array(Math.ceil(strips / STRIPS));
  for (let k = 0; k < strips; k++) {
    const block = Math.floor(k / STRIPS);
    policy.lastEnd[block] = Math.max(policy.lastEnd[block], policy.end[policy.stripJob[k]]);
  }
  policy.firstStrip = new Int32Array(count).fill(-1);
  for (let k = strips - 1; k >= 0; k--) policy.firstStrip[policy.stripJob[k]] = k;
  return policy;
}

// What has come by a time as sums, so that means over any interval are exact.
const WEIGHTS = 2 ** 20; // a time and a weight below this share a number, which sorts fast

class Arrivals {
  constructor(times, weights) {
    const keys = Float64Array.from(times, (time, i) => time * WEIGHTS + (weights ? weights[i] : 1)).sort();
    this.times = keys.map((key) => Math.floor(key / WEIGHTS));
    this.count = new Float64Array(keys.length + 1);
    this.moment = new Float64Array(keys.length + 1);
    for (let k = 0; k < keys.length; k++) {
      const weight = keys[k] - this.times[k] * WEIGHTS;
      this.count[k + 1] = this.count[k] + weight;
      this.moment[k + 1] = this.moment[k] + weight * this.times[k];
    }
  }

  // The integral from the beginning of time until `time` of what has come by then.
  integral(time) {
    let low = 0;
    let high = this.times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return this.count[low] * time - this.moment[low];
  }
}

// The mean of (what has come - what has gone) in each interval between the edges.
function means(come, gone, edges) {
  const sums = edges.map((time) => come.integral(time) - gone.integral(time));
  return edges.slice(1).map((time, k) => (sums[k + 1] - sums[k]) / (time - edges[k]));
}
