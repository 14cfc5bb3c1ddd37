// Times as text, in the site's zone, and the ticks of time axes.

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY];
const MONTHS = [1, 2, 3, 6, 12, 24, 60, 120, 240];
const NAMES = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const two = (number) => String(number).padStart(2, "0");
const grouped = (number) => Math.round(number).toLocaleString("en-US");

// A duration in two units, like the rest of the page.
function human(seconds) {
  if (!Number.isFinite(seconds)) return "n/a";
  if (seconds < 0) return "-" + human(-seconds);
  if (seconds < 9.95 && seconds !== Math.round(seconds)) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR) return `${Math.floor(whole / MINUTE)} min ${two(whole % MINUTE)} s`;
  const minutes = Math.round(whole / MINUTE);
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
  const hours = Math.round(whole / HOUR);
  return `${grouped(Math.floor(hours / 24))} d ${two(hours % 24)} h`;
}

class Clock {
  // `epoch`: Unix time of second 0 of the log, or null; `zone`: a name of the tz database; `first`: the first submission, s.
  constructor({ epoch, zone, offset, first }) {
    this.epoch = epoch;
    this.offset = offset;
    this.first = first;
    const parts = { year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" };
    try {
      this.format = zone ? new Intl.DateTimeFormat("en-US", { timeZone: zone, hourCycle: "h23", ...parts }) : null;
    } catch {
      this.format = null; // a browser that does not know the zone
    }
  }

  // Local time of the site as if it were UTC, in s; without a calendar the time since the first submission.
  local(time) {
    if (this.epoch === null) return time - this.first;
    const unix = Math.floor(this.epoch + time);
    if (!this.format) return unix + this.offset;
    const found = {};
    for (const { type, value } of this.format.formatToParts(unix * 1000)) found[type] = Number(value);
    return Date.UTC(found.year, found.month - 1, found.day, found.hour, found.minute, found.second) / 1000;
  }

  // A time of the log as date and time, or as time after the first submission.
  text(time, withSeconds = false) {
    if (this.epoch === null) return time <= this.first ? "the first submission" : `${human(time - this.first)} after the first submission`;
    return new Date(this.local(time) * 1000).toISOString().slice(0, withSeconds ? 19 : 16).replace("T", " ");
  }

  // Round times between two times, at most so many, with a label each.
  ticks(begin, end, most) {
    const shift = this.local(begin) - begin; // across a clock change, ticks keep the distance of the left end
    const step = STEPS.find((s) => (end - begin) / s <= most);
    if (step === undefined && this.epoch !== null) return this.months(begin, end, most, shift);
    const length = step || DAY * Math.ceil((end - begin) / DAY / most);
    const aligned = this.epoch !== null && length === 7 * DAY ? 4 * DAY : 0; // Mondays
    const ticks = [];
    for (let t = Math.ceil((begin + shift - aligned) / length) * length + aligned; t <= end + shift; t += length) {
      ticks.push({ time: t - shift, label: this.epoch === null ? sinceFirst(t, length) : this.short(t, length) });
    }
    return ticks;
  }

  months(begin, end, most, shift) {
    const every = MONTHS.find((m) => (end - begin) / (m * 30.44 * DAY) <= most) || 1200;
    const date = new Date((begin + shift) * 1000);
    const ticks = [];
    for (let month = Math.floor((date.getUTCFullYear() * 12 + date.getUTCMonth()) / every) * every; ; month += every) {
      const time = Date.UTC(Math.floor(month / 12), month % 12, 1) / 1000 - shift;
      if (time > end) return ticks;
      const year = String(Math.floor(month / 12));
      if (time >= begin) ticks.push({ time, label: month % 12 ? NAMES[month % 12] : year });
    }
  }

  short(local, step) {
    const date = new Date(local * 1000);
    if (local % DAY === 0) return `${date.getUTCDate()} ${NAMES[date.getUTCMonth()]}`;
    return date.toISOString().slice(11, step < MINUTE ? 19 : 16);
  }
}

function sinceFirst(seconds, step) {
  const [unit, name] = step >= DAY ? [DAY, "d"] : step >= HOUR ? [HOUR, "h"] : step >= MINUTE ? [MINUTE, "min"] : [1, "s"];
  return `${grouped(seconds / unit)} ${name}`;
}

// The stretch of time that all drawings over time show.
class View {
  constructor(begin, end) {
    this.first = begin;
    this.last = Math.max(end, begin + 1);
    this.begin = this.first;
    this.end = this.last;
    this.listeners = [];
  }

  set(begin, end) {
    const length = Math.min(Math.max(end - begin, 10), this.last - this.first);
    const middle = (begin + end) / 2;
    this.begin = Math.min(Math.max(middle - length / 2, this.first), this.last - length);
    this.end = this.begin + length;
    for (const listener of this.listeners) listener();
  }

  // Zoom by a factor around a time that stays where it is.
  zoom(factor, around = (this.begin + this.end) / 2) {
    const length = Math.min(Math.max((this.end - this.begin) * factor, 10), this.last - this.first);
    const left = ((around - this.begin) / (this.end - this.begin)) * length;
    this.set(around - left, around - left + length);
  }

  pan(share) {
    const by = (this.end - this.begin) * share;
    this.set(this.begin + by, this.end + by);
  }

  whole() {
    this.set(this.first, this.last);
  }
}
