"""The style sheet of the page, light and dark, from the width of a phone upwards."""

CSS = """
:root {
  color-scheme: light dark;
  --paper: #fdfdfc; --ink: #1d2127; --soft: #565d68; --line: #dcdfe4; --control: #868d98; --panel: #f4f5f6; --accent: #0072b2;
  --care: #fff6e0; --care-line: #e69f00; --best: #e4f1ea;
  --immediate: #b8bcc2; --reserved: #e69f00; --backfilled: var(--blue); --blue: #0072b2;
  --ran: #8a9099; --before: #c9cdd3; --later: var(--blue); --itself: #009e73;
  --on-immediate: #1d2127; --on-reserved: #1d2127; --on-backfilled: #ffffff;
  --on-ran: #1d2127; --on-before: #1d2127; --on-later: #ffffff; --on-itself: #1d2127;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15181c; --ink: #e7e9ec; --soft: #a3abb6; --line: #343a43; --control: #6c7480; --panel: #1d2126; --accent: #6bb8e8;
    --care: #2b2415; --care-line: #e69f00; --best: #1d3329; --blue: #4a9fd8;
    --on-backfilled: #1d2127; --on-later: #1d2127;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0; background: var(--paper); color: var(--ink); line-height: 1.55;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Helvetica Neue", Arial, sans-serif;
}
main { max-width: 67rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
p { max-width: 46rem; }
h1 { font-size: clamp(1.5rem, 1.1rem + 1.8vw, 2.1rem); line-height: 1.2; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.8rem 0 .6rem; padding-top: 1rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; }
.eyebrow { margin: 0 0 .4rem; color: var(--soft); font-size: .85rem; letter-spacing: .04em; }
.answer {
  font-size: clamp(1.1rem, 1rem + .5vw, 1.3rem); line-height: 1.5; margin: 1.2rem 0 1.4rem; max-width: 52rem; overflow-wrap: anywhere;
}
.note { color: var(--soft); font-size: .9rem; margin: .4rem 0; overflow-wrap: anywhere; }
.facts { display: flex; flex-wrap: wrap; gap: .5rem 2.2rem; margin: 0; padding: 0; }
.facts div { min-width: 6rem; }
.facts dt { color: var(--soft); font-size: .8rem; }
.facts dd { margin: 0; font-size: 1.05rem; font-variant-numeric: tabular-nums; }
.care {
  background: var(--care); border-left: 4px solid var(--care-line); padding: .8rem 1.1rem; margin: 1.8rem 0 0; border-radius: 0 6px 6px 0;
}
.care h2 { font-size: 1rem; margin: 0 0 .3rem; padding: 0; border: 0; }
.care ul { margin: 0; padding-left: 1.1rem; }
.care li { margin: .25rem 0; }
.scroll { overflow-x: auto; margin: .6rem 0; }
.scroll:focus-visible, summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .93rem; }
th, td { padding: .45rem .55rem; text-align: right; border-bottom: 1px solid var(--line); vertical-align: top; white-space: nowrap; }
thead th { color: var(--soft); font-weight: 600; font-size: .82rem; vertical-align: bottom; white-space: normal; min-width: 4.6rem; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
tbody th { font-weight: 600; white-space: normal; }
.months tbody th { white-space: nowrap; }
.words { width: auto; }
.words th, .words td { text-align: left; }
td.wrap { white-space: normal; overflow-wrap: anywhere; text-align: left; }
td small { display: block; color: var(--soft); font-size: .8rem; }
td .best { background: var(--best); border-radius: 4px; padding: .1rem .35rem; margin-right: -.35rem; font-weight: 600; }
[title] { cursor: help; }
td[title] { text-decoration: none; }
figure { margin: 1rem 0; }
figure svg { display: block; width: 100%; height: auto; overflow: visible; color: var(--ink); }
figure svg text { font-family: inherit !important; }
figcaption { color: var(--soft); font-size: .9rem; margin: .3rem 0 0; max-width: 46rem; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem 2rem; }
.wide svg { min-width: 40rem; }
.bar { display: flex; min-width: 12rem; height: 1.15rem; border-radius: 4px; overflow: hidden; background: var(--line); }
.bar i { display: block; height: 100%; }
.immediate { background: var(--immediate); } .reserved { background: var(--reserved); } .backfilled { background: var(--backfilled); }
.ran { background: var(--ran); } .before { background: var(--before); } .later { background: var(--later); }
.itself { background: var(--itself); }
.key { display: inline-block; width: .75em; height: .75em; border-radius: 2px; margin-right: .35em; }
details { margin: .8rem 0; }
summary { cursor: pointer; color: var(--accent); }
pre {
  background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .8rem 1rem; overflow-x: auto;
  font: .85rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
.contents ul { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; padding: 0; margin: 1.4rem 0 0; font-size: .92rem; }
.contents a { color: var(--accent); }
.only-live { display: none; }
.live .only-live { display: block; }
.story:focus { outline: none; }
.live .only-static, [hidden] { display: none !important; }
button, input, select {
  font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--control); border-radius: 6px; padding: .2rem .6rem;
}
button { cursor: pointer; }
button:focus-visible, input:focus-visible, select:focus-visible, canvas:focus-visible, .chart:focus-visible {
  outline: 2px solid var(--accent); outline-offset: 2px;
}
.sort { all: unset; cursor: pointer; font-weight: 600; }
.sort::after { content: " ↕"; opacity: .55; }
[aria-sort="descending"] .sort::after { content: " ↓"; opacity: 1; }
[aria-sort="ascending"] .sort::after { content: " ↑"; opacity: 1; }
.sort:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.link { all: unset; cursor: pointer; color: var(--accent); text-decoration: underline; }
.link:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
fieldset { border: 1px solid var(--line); border-radius: 6px; display: flex; flex-wrap: wrap; gap: .3rem 1.4rem; margin: 1.6rem 0 0; }
fieldset select { margin-left: .3rem; max-width: 100%; }
.bar-of-buttons { display: flex; flex-wrap: wrap; gap: .4rem; align-items: center; margin: .8rem 0 .4rem; }
.bar-of-buttons form { display: flex; gap: .4rem; align-items: center; margin-left: auto; }
.range { font-variant-numeric: tabular-nums; display: block; }
.keys { display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; font-size: .9rem; margin: .3rem 0; }
.gantt { margin: .8rem 0; }
.gantt figcaption { font-weight: 600; color: var(--ink); font-size: .95rem; }
.gantt canvas { width: 100%; height: 15rem; display: block; touch-action: pan-y; cursor: grab; }
.chart { width: 100%; overflow: hidden; }
.uplot { color: var(--ink); }
.u-legend { font-size: .85rem !important; text-align: left !important; }
.u-legend tr, .u-legend th, .u-legend td { border: 0; width: auto; }
.tip {
  position: fixed; z-index: 9; max-width: 22rem; pointer-events: none; background: var(--paper); color: var(--ink);
  border: 1px solid var(--line); border-radius: 6px; padding: .4rem .7rem; font-size: .85rem; box-shadow: 0 2px 10px rgb(0 0 0 / .25);
}
.tip div:first-child { font-weight: 600; }
.story:not(:empty) { background: var(--panel); border-radius: 6px; padding: .2rem 1.1rem 1rem; }
@media print { .contents, .bar-of-buttons, fieldset, .tip, .sort::after { display: none; } }
@media print { main { max-width: none; padding: 0; } figure, tr { break-inside: avoid; } .wide svg { min-width: 0; } }
"""
