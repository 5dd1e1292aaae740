"""Style of a report, and the script of its control.  Both are part of the page."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light; --ink: #1d2430; --quiet: #5b6675; --line: #d8dee6; --mark: #eef4fb; --accent: #0b5cad; }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: #fff; font: 16px/1.55 system-ui, "Segoe UI", Roboto, "Liberation Sans",
  "DejaVu Sans", sans-serif; }
main, header, footer { max-width: 62rem; margin: 0 auto; padding: 0 1rem; overflow-wrap: anywhere; }
header { padding-top: 1.5rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.25rem; margin: 2.25rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; }
p { margin: .5rem 0; }
.quiet, figcaption, footer { color: var(--quiet); font-size: .9rem; }
.conclusion, .says { background: var(--mark); border-left: 4px solid var(--accent); padding: .75rem 1rem; }
.conclusion { font-size: 1.1rem; margin: 1rem 0; }
.warning { background: #fff4e0; border-left: 4px solid #b35c00; padding: .75rem 1rem; }
nav ul { list-style: none; padding: 0; margin: .75rem 0; display: flex; flex-wrap: wrap; gap: .25rem 1rem; }
a { color: var(--accent); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; margin: .5rem 0; }
th, td { padding: .3rem .7rem .3rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line);
  overflow-wrap: normal; }
td { max-width: 26rem; overflow-wrap: break-word; }
th { color: var(--quiet); font-weight: 600; white-space: nowrap; }
td + td { min-width: 3.5rem; } td.long { min-width: 10rem; } td[style] { white-space: nowrap; }
.swatch { padding-left: 1.1em; background: linear-gradient(var(--tone), var(--tone)) 0 .3em / .7em .7em no-repeat; }
dl { display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; gap: .2rem 1rem; margin: .5rem 0; }
dt { color: var(--quiet); } dd { margin: 0; }
pre { background: #f5f7f9; padding: .75rem 1rem; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
figure { margin: 1rem 0; } .wide > svg { display: block; width: 100%; height: auto;
  min-width: calc(var(--width) * .8px); max-width: calc(var(--width) * 1.7px); }
.control { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; margin: .75rem 0; }
.control[hidden], figure[hidden] { display: none; }
.control label { display: flex; flex-direction: column; font-size: .9rem; color: var(--quiet); max-width: 100%; }
select { font: inherit; color: var(--ink); padding: .35rem .5rem; max-width: 100%; border: 1px solid #9aa6b4;
  border-radius: 4px; background: #fff; }
footer { padding-top: 2rem; padding-bottom: 2rem; }
@media (max-width: 40rem) {
  dl { grid-template-columns: minmax(6rem, 9rem) 1fr; }
  th { white-space: normal; vertical-align: bottom; }
  table { font-size: .85rem; } th, td { padding-right: .45rem; } td + td { min-width: 2.2rem; }
  td { overflow-wrap: anywhere; } td:not([style]) { min-width: 4.2rem; } td.long { min-width: 8rem; }
  .conclusion { font-size: 1rem; }
}
@media print {
  @page { margin: 1.6cm; }
  :root { font-size: 10pt; }
  body { font-size: 1rem; }
  main, header, footer { max-width: none; padding-left: 0; padding-right: 0; }
  nav, .control { display: none; }
  footer { padding-top: .5rem; padding-bottom: 0; }
  .wide { overflow: visible; } .wide > svg { min-width: 0; max-width: 16cm; max-height: 12cm; }
  table { font-size: .85rem; } td { max-width: none; }
  figure, tr, .conclusion, .says, pre { break-inside: avoid; }
  h2, h3, caption { break-after: avoid; }
  .conclusion, .says, .warning { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .swatch { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""

# Shows the precomputed choice for a preference and a risk.  Texts are inserted as text, never as HTML.  The choice is
# part of the address, so that it can be linked to: #preference=final&risk=best
SCRIPT = """
(function () {
  "use strict";
  var choices = JSON.parse(document.getElementById("choices").textContent);
  var control = document.getElementById("control");
  var preference = document.getElementById("preference");
  var risk = document.getElementById("risk");
  var says = document.getElementById("choice-says");
  var rows = document.getElementById("choice-rows");
  var figures = document.querySelectorAll("figure[data-preference]");
  function show() {
    var choice = choices[preference.value][risk.value];
    says.textContent = choice.says;
    rows.replaceChildren.apply(rows, choice.rows.map(function (cells) {
      var row = document.createElement("tr");
      cells.forEach(function (text, place) {
        var cell = document.createElement("td");
        cell.textContent = text;
        if (place) { cell.style.textAlign = "right"; }
        row.appendChild(cell);
      });
      return row;
    }));
    figures.forEach(function (figure) { figure.hidden = figure.dataset.preference !== preference.value; });
  }
  function fromAddress() {
    var wanted = new URLSearchParams(window.location.hash.slice(1));
    var found = false;
    [[preference, "preference"], [risk, "risk"]].forEach(function (pair) {
      var value = wanted.get(pair[1]);
      var known = Array.prototype.some.call(pair[0].options, function (option) { return option.value === value; });
      if (known) { pair[0].value = value; found = true; }
    });
    show();
    if (found) { document.getElementById("selection").scrollIntoView(); }
  }
  function changed() {
    show();
    window.history.replaceState(null, "", "#preference=" + encodeURIComponent(preference.value) + "&risk=" +
      encodeURIComponent(risk.value));
  }
  control.hidden = false;
  preference.addEventListener("change", changed);
  risk.addEventListener("change", changed);
  control.addEventListener("submit", function (event) { event.preventDefault(); });
  window.addEventListener("hashchange", fromAddress);
  fromAddress();
}());
"""
