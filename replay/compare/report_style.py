"""How the report looks: light and dark, wide and narrow, on paper. No font, picture or script is loaded."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --ink: #1d2227; --soft: #59636e; --page: #fff; --card: #f6f7f9; --line: #d5dae0;
  --shade: 0 114 178; --shade-differs: 213 94 0; --in: #00775a; --out: #c04f00; --accent: #00619c; --warn: #fff4d6; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ec; --soft: #9aa5b1; --page: #14181c; --card: #1d2329; --line: #38414a;
    --shade: 64 156 214; --shade-differs: 240 130 50; --in: #3cc79b; --out: #ff9a52; --accent: #6cb8ec;
    --warn: #3a3014; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 1.25rem 1rem 3rem; max-width: 68rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; }
p { margin: .4rem 0; max-width: 46rem; }
a { color: var(--accent); }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: .88em; }
.small { color: var(--soft); font-size: .82rem; font-weight: 400; }
.narrow { display: none; }
.notes { background: var(--warn); border-radius: 6px; padding: .6rem 1rem; margin: 1rem 0; }
.notes ul { margin: 0; padding-left: 1.1rem; }
.cards { display: grid; gap: .75rem; grid-template-columns: repeat(3, minmax(0, 1fr)); margin: 1rem 0; }
.tables { display: grid; gap: .75rem; grid-template-columns: repeat(2, minmax(0, 1fr)); margin: .75rem 0; }
.card { background: var(--card); border-radius: 6px; padding: .75rem 1rem; min-width: 0; }
.tables .wide { grid-column: 1 / -1; }
.figure { font-size: 1.9rem; line-height: 1.2; font-weight: 650; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: .25rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .5rem; font-weight: 400; overflow-wrap: normal; }
thead th { color: var(--soft); font-size: .82rem; vertical-align: bottom; border-bottom: 1px solid var(--line); }
tbody th { overflow-wrap: break-word; }
.n { text-align: right; }
.square td { border: 2px solid var(--card); }
.square .same { background: rgb(var(--shade) / calc(.08 + .5 * var(--s))); }
.square .differs { background: rgb(var(--shade-differs) / calc(.08 + .5 * var(--s))); }
.square .all { color: var(--soft); }
.counts tbody tr { border-top: 1px solid var(--line); }
.counts th { overflow-wrap: break-word; padding-left: 0; }
.counts tbody th { padding-left: 1rem; }
.counts .head th, .counts .sum th, .counts .other th { padding-left: 0; }
.strata { width: auto; }
.strata td:first-child { padding-left: 0; }
.counts .head th, .counts .head td, .counts .sum th, .counts .sum td { font-weight: 600; }
.forest th[scope=row] { width: 24%; overflow-wrap: anywhere; }
.forest th:first-child { padding-left: 0; }
.forest th .small { display: block; }
.forest td.n { white-space: nowrap; }
.forest td.n .small { display: block; }
.forest .plot { width: 38%; padding: 0 .5rem; }
.forest tbody tr { border-bottom: 1px solid var(--line); }
.forest .axis { border: 0; }
svg { display: block; overflow: visible; min-height: 26px; }
svg text { fill: var(--soft); font-size: 11px; }
svg .zero { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 2 3; }
svg .tick, svg .whisker { stroke: var(--ink); stroke-width: 1.5; }
svg .tick { stroke: var(--soft); stroke-width: 1; }
svg .open { fill: var(--page); stroke: var(--ink); stroke-width: 1.5; }
svg .clear { fill: var(--accent); stroke: var(--accent); }
.in { fill: var(--in); } .out { fill: var(--out); }
.any { fill-opacity: .3; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .3em; }
.key.in { background: var(--in); } .key.out { background: var(--out); }
.key.any { background: var(--soft); opacity: .4; }
.badge { display: inline-block; white-space: nowrap; border: 1px solid; border-radius: 99px; padding: 0 .5rem;
  font-size: .78rem; }
.badge.in { color: var(--in); } .badge.out { color: var(--out); }
details { border-bottom: 1px solid var(--line); }
summary { cursor: pointer; padding: .5rem 0; }
summary .url { color: var(--soft); font-size: .88rem; }
details > div { padding: 0 0 1rem; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .15rem .75rem; margin: .25rem 0 .75rem; }
dt { color: var(--soft); max-width: 10rem; } dd { margin: 0; }
dd ul { margin: 0; padding-left: 1.1rem; }
pre { white-space: pre-wrap; background: var(--card); border-radius: 6px; padding: .75rem 1rem; margin: 0;
  max-height: 32rem; overflow-y: auto; unicode-bidi: isolate; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: .75rem; font-size: .88rem; }
footer td, footer th { font-size: .88rem; }
footer td { overflow-wrap: anywhere; }
footer tbody th { overflow-wrap: break-word; padding-left: 0; }
@media (max-width: 44rem) {
  body { padding-top: .75rem; }
  .cards, .tables { grid-template-columns: minmax(0, 1fr); }
  .narrow { display: inline; color: var(--soft); }
  .forest, .forest tbody, .forest tr, .forest td, .forest th { display: block; width: auto; }
  .forest thead, .forest .axis td:not(.plot) { display: none; }
  .forest tbody tr { padding: .5rem 0; }
  .forest th[scope=row], .forest .plot { width: auto; }
  .forest th, .forest td { padding: .1rem 0; }
  .forest td.n { text-align: left; white-space: normal; }
  .forest td.n .small { display: inline; }
  .card { padding: .6rem .7rem; }
  .counts th, .counts td { padding: .25rem .3rem; font-size: .88rem; }
  .square th, .square td { padding: .25rem .3rem; font-size: .85rem; }
  .square td .small { display: block; }
  .square.wide thead th.n span { writing-mode: vertical-rl; transform: rotate(180deg); }
  .square.wide th, .square.wide td { font-size: .76rem; padding: .2rem; }
  .square.wide td .small { display: none; }
}
@media print {
  :root { color-scheme: light; }
  .tables { grid-template-columns: minmax(0, 1fr); }
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  tr, .card, svg { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  pre { max-height: none; overflow: visible; }
}
"""
