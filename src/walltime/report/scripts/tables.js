// Tables that can be sorted, and the choice of policies: what belongs to a policy carries its number as data-p.

const UNITS = { s: 1, min: MINUTE, h: HOUR, d: DAY, "%": 1 };

// The value of a cell as a number, NaN if it is words.
function numberIn(cell) {
  if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
  const shown = [...cell.childNodes].filter((node) => node.nodeName !== "SMALL").map((node) => node.textContent).join(" ").trim();
  const text = shown.replace(/,/g, "").replace(/\u00a0/g, " ");
  if (/^(\d{4})-(\d{2})(-\d{2})?$/.test(text)) return Number(text.replace(/-/g, ""));
  if (/^[<>] [\d.]+ %$/.test(text)) return parseFloat(text.slice(2)) + (text[0] === "<" ? -0.001 : 0.001);
  if (/^[+-]?[\d.]+$/.test(text)) return Number(text);
  const parts = text.match(/^[+-]?([\d.]+ (s|min|h|d|%) ?)+$/) ? [...text.matchAll(/([\d.]+) (s|min|h|d|%)/g)] : [];
  if (!parts.length) return NaN;
  const sum = parts.reduce((total, [, number, unit]) => total + Number(number) * UNITS[unit], 0);
  return text.startsWith("-") ? -sum : sum;
}

function sortable(table) {
  const body = table.tBodies[0];
  const heads = table.tHead ? [...table.tHead.rows[0].cells] : [];
  if (table.matches(".words") || !body || body.rows.length < 3 || table.tHead.rows.length > 1 || table.querySelector("[colspan]")) return;
  const original = [...body.rows];
  heads.forEach((head, column) => {
    if (!head.textContent.trim()) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const order = before === null ? "descending" : before === "descending" ? "ascending" : null;
      for (const other of heads) other.removeAttribute("aria-sort");
      if (order) head.setAttribute("aria-sort", order);
      body.append(...(order ? sorted(original, column, order === "ascending" ? 1 : -1) : original));
    });
  });
}

// The text of a cell as it is read; what stands in small print follows in parentheses.
function words(cell) {
  const small = [...cell.querySelectorAll("small")].map((node) => node.textContent.trim()).filter(Boolean);
  const text = [...cell.childNodes].filter((node) => node.nodeName !== "SMALL").map((node) => node.textContent).join(" ");
  const plain = text.replace(/\u00ad/g, "").replace(/[\u00a0\s]+/g, " ").trim();
  return small.length ? `${plain} (${small.join(", ")})` : plain;
}

const LATEX = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "±": "$\\pm$", "†": "\\dag{}", "<": "\\textless{}", ">": "\\textgreater{}" };
const forLatex = (text) => text.replace(/[&%$#_{}\\~^±†<>]/g, (sign) => LATEX[sign] ?? `\\${sign}`);
const FORMATS = {
  CSV: (rows) => rows.map((row) => row.map((cell) => (/[",\n]/.test(cell) ? `"${cell.replace(/"/g, '""')}"` : cell)).join(",")).join("\n"),
  Markdown: (rows) => {
    const line = (row) => `| ${row.map((cell) => cell.replace(/\|/g, "\\|")).join(" | ")} |`;
    return [line(rows[0]), line(rows[0].map((_, k) => (k ? "--:" : ":--"))), ...rows.slice(1).map(line)].join("\n");
  },
  LaTeX: (rows) => {
    const line = (row) => `${row.map(forLatex).join(" & ")} \\\\`;
    const kinds = rows[0].map((_, k) => (k ? "r" : "l")).join("");
    const [head, ...rest] = rows;
    return [`\\begin{tabular}{${kinds}}`, "\\toprule", line(head), "\\midrule", ...rest.map(line), "\\bottomrule", "\\end{tabular}"].join("\n");
  },
};

// Below a table: its rows as they are shown, in a form for papers and spreadsheets.
function copyable(table) {
  if (!table.tHead || table.tHead.rows.length > 1 || table.querySelector("[colspan]")) return;
  const bar = document.createElement("p");
  bar.className = "copy";
  bar.append("copy as");
  for (const [name, write] of Object.entries(FORMATS)) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.setAttribute("aria-label", `copy the table as ${name}`);
    button.addEventListener("click", async () => {
      const text = write([...table.rows].filter((row) => !row.hidden).map((row) => [...row.cells].filter((cell) => !cell.hidden).map(words)));
      bar.querySelector("textarea")?.remove();
      const area = document.createElement("textarea");
      area.readOnly = true;
      area.rows = 6;
      area.value = `${text}\n`;
      area.setAttribute("aria-label", `the table as ${name}`);
      bar.append(area);
      area.select();
      await navigator.clipboard?.writeText(area.value).catch(() => {}); // where that is not allowed, the text is selected
    });
    bar.append(" ", button);
  }
  table.after(bar);
}

function sorted(rows, column, sign) {
  const keyed = rows.map((row) => [row, row.cells[column] ? numberIn(row.cells[column]) : NaN, row.cells[column]?.textContent ?? ""]);
  const isWords = keyed.every(([, number]) => Number.isNaN(number));
  return keyed
    .sort(([, a, s], [, b, t]) => {
      if (isWords) return sign * s.localeCompare(t);
      if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b); // what has no number comes last
      return sign * (a - b);
    })
    .map(([row]) => row);
}

// Which policies are shown, and the one that the others are compared with.
class Choice {
  constructor(names) {
    this.names = names;
    this.shown = names.map(() => true);
    this.base = 0;
    this.listeners = [];
  }

  apply() {
    for (const element of document.querySelectorAll("[data-p]")) {
      element.hidden = !element.dataset.p.split(" ").every((p) => this.shown[Number(p)]);
    }
    for (const cell of document.querySelectorAll("td[data-key]")) this.compare(cell);
    for (const name of document.querySelectorAll(".base")) name.textContent = this.names[this.base];
    for (const listener of this.listeners) listener(this);
  }

  // The small print of a cell: how it differs from that of the baseline.
  compare(cell) {
    const base = cell.closest("table").querySelector(`td[data-key="${CSS.escape(cell.dataset.key)}"][data-of="${this.base}"]`);
    cell.querySelector("small")?.remove();
    if (!base || base === cell) return;
    const small = document.createElement("small");
    small.textContent = difference(Number(cell.dataset.v), Number(base.dataset.v));
    if (small.textContent) cell.append(small);
  }
}

// A relative difference with its sign, like the rest of the page.
function difference(value, base) {
  const percent = (100 * (value - base)) / base;
  if (!Number.isFinite(percent)) return "";
  const size = Math.abs(percent);
  if (size < 0.05) return "±0 %";
  const number = size < 9.95 ? size.toFixed(1) : Math.round(size).toLocaleString("en-US");
  return `${percent < 0 ? "-" : "+"}${number} %`;
}
