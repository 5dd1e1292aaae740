// One chart: lines with bands, a legend that is also the readout, zoom, keys, a table and downloads.
//
// spec: name, title, caption, summary(), lines(), x(), xTicks(low, high, width), xLabel(), top(max), yTicks, yText,
// marks() for vertical lines, zoomKey, places (how many), at(place) for the readout's heading, rows() and columns for
// the table, csv() for the file.
// line: label, algorithm (place or null), y, low, high, colour, dash, grey, text(place)

const DASHES = [[], [5, 2], [1.5, 1.5], [6, 2, 1.5, 2]];
const GREY = "#8a8f98";
const INK = "#1d2430";
const GRID = "#e3e7ec";
const NEAR = 16; // pixels from a line at which a click means it

function tone(colour, strength) {
  return colour + Math.round(255 * strength).toString(16).padStart(2, "0");
}

function makeChart(root, spec, page) {
  const { state } = page;
  const plot = element("div", {
    class: "plot", tabindex: "0", role: "slider", "aria-label": spec.title + ": move through it with the arrow keys",
    "aria-valuemin": 0, "aria-valuemax": spec.places - 1, keydown: onKey,
  });
  const heading = element("p", { class: "at" });
  const legend = element("div", { class: spec.sorted ? "legend" : "legend long", role: "group", "aria-label": "Values, and whom to follow" });
  const summary = element("p", { class: "quiet" });
  const list = tableDetails("Table: " + spec.title, () => table(spec.columns(), spec.rows(), spec.title));
  const reset = button("Whole range", () => state.set({ [spec.zoomKey]: null }));
  const tools = element("div", { class: "tools" }, reset, button("PNG", savePng, { "aria-label": "PNG of " + spec.title }),
    button("SVG", saveSvg, { "aria-label": "SVG of " + spec.title }),
    button("CSV", () => downloadCsv(spec.name + ".csv", spec.csv()), { "aria-label": "CSV of " + spec.title }));
  root.replaceChildren(element("figure", { class: "chart" }, element("h3", {}, spec.title), ...(spec.controls || []),
    element("div", { class: "card" }, plot, heading, legend), tools, element("figcaption", {}, spec.caption), summary,
    list.details));
  let drawn = null;
  let lines = [];
  let place = null; // of the cursor
  let quiet = false;
  let pointer = false; // whether the reader moves this chart's own cursor

  function onKey(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageDown: -10, PageUp: 10 }[event.key];
    const ends = { Home: 0, End: spec.places - 1 };
    if (event.key === "Escape") { page.hover(chart, null); return; }
    if (step === undefined && !(event.key in ends)) { return; }
    event.preventDefault();
    const from = place === null ? spec.rest() : place;
    const to = step === undefined ? ends[event.key] : Math.min(Math.max(from + step, 0), spec.places - 1);
    page.hover(chart, to);
    page.announce(spec.at(to) + ": " + lines.map((line) => line.label + " " + line.text(to)).join("; "));
  }

  function draw() {
    lines = spec.lines();
    const followed = state.follow;
    const x = spec.x();
    const columns = [x];
    const series = [{}];
    const bands = [];
    lines.forEach((line) => {
      const mine = line.algorithm === null || followed === null || line.algorithm === followed;
      const own = line.algorithm !== null && line.algorithm === followed;
      const colour = line.grey && !own ? GREY : line.colour;
      const strength = mine ? 1 : 0.22;
      columns.push(line.y);
      series.push({
        scale: "y", stroke: tone(colour, strength), width: own ? 3 : 1.7, dash: DASHES[line.dash], spanGaps: false,
        points: { show: spec.places <= 30, size: own ? 7 : 5, fill: tone(colour, strength), stroke: tone(colour, strength) },
      });
      if (line.low && mine && (!line.grey || own)) {
        columns.push(line.high, line.low);
        const edge = { scale: "y", stroke: "transparent", width: 0, points: { show: false } };
        bands.push({ series: [series.length, series.length + 1], fill: tone(colour, own ? 0.25 : 0.12) });
        series.push({ ...edge }, { ...edge });
      }
    });
    if (drawn) { drawn.destroy(); }
    const width = Math.max(Math.floor(plot.clientWidth), 200);
    const zoom = spec.zoom();
    const edges = zoom || [x[0], x[x.length - 1]];
    const range = edges[0] < edges[1] ? edges : [edges[0] - 0.5, edges[0] + 0.5];
    drawn = new uPlot({
      width,
      height: width < 500 ? 250 : 340,
      padding: [10, 30, 0, 0],  // on the right, half of the label of the last timepoint
      legend: { show: false },
      series,
      bands,
      scales: { x: { time: false, range: () => range }, y: { range: (_, __, max) => [0, spec.top(max)] } },
      axes: [
        { stroke: INK, grid: { stroke: GRID, width: 1 }, ticks: { stroke: GRID, width: 1 }, label: spec.xLabel(), size: 30,
          labelSize: 22, labelGap: 0, labelFont: FONT, font: FONT,
          splits: (_, __, low, high) => spec.xTicks(low, high, Math.floor(width / 70)),
          values: (_, ticks) => ticks.map(spec.xText) },
        { stroke: INK, grid: { stroke: GRID, width: 1 }, ticks: { stroke: GRID, width: 1 }, font: FONT, size: 52,
          ...(spec.yTicks ? { splits: () => spec.yTicks, values: (_, ticks) => ticks.map(spec.yText) } : {}) },
      ],
      cursor: {
        y: false, drag: { x: true, y: false, setScale: false }, points: { size: 7 },
        bind: { dblclick: () => () => { state.set({ [spec.zoomKey]: null }); return null; } },
      },
      hooks: {
        setCursor: [(chartNow) => {
          if (quiet || !pointer) { return; }
          const at = chartNow.cursor.left < 0 ? null : chartNow.cursor.idx;
          // The mouse may leave after the keys have moved another chart.
          if (page.owner !== chart && (at === null || !plot.matches(":hover"))) { return; }
          if (at !== place) { page.hover(chart, at === undefined ? null : at); }
        }],
        setSelect: [(chartNow) => {
          if (chartNow.select.width < 5) { return; }
          const from = chartNow.posToVal(chartNow.select.left, "x");
          const to = chartNow.posToVal(chartNow.select.left + chartNow.select.width, "x");
          state.set({ [spec.zoomKey]: [from, to].map(spec.toZoom) });
        }],
        draw: [(chartNow) => spec.marks().forEach((mark) => drawMark(chartNow, mark))],
      },
    }, columns, plot);
    drawn.over.addEventListener("click", followNearest);
    drawn.over.addEventListener("mouseenter", () => { pointer = true; });
    reset.hidden = !zoom;
    summary.textContent = spec.summary();
    list.update();
    show();
  }

  function drawMark(chartNow, mark) {
    const { ctx, bbox } = chartNow;
    const across = mark.x !== undefined;
    const at = Math.round(chartNow.valToPos(across ? mark.x : mark.y, across ? "x" : "y", true));
    if (across && (at < bbox.left || at > bbox.left + bbox.width)) { return; }
    ctx.save();
    ctx.strokeStyle = mark.colour || "#0b5cad";
    ctx.lineWidth = uPlot.pxRatio;
    ctx.setLineDash([4 * uPlot.pxRatio, 3 * uPlot.pxRatio]);
    ctx.beginPath();
    ctx.moveTo(across ? at : bbox.left, across ? bbox.top : at);
    ctx.lineTo(across ? at : bbox.left + bbox.width, across ? bbox.top + bbox.height : at);
    ctx.stroke();
    ctx.restore();
  }

  function followNearest() {
    const { left, top, idx } = drawn.cursor;
    if (left < 0 || idx === null || idx === undefined) { return; }
    let best = null;
    let distance = NEAR;
    lines.forEach((line) => {
      const value = line.y[idx];
      if (line.algorithm === null || value === null) { return; }
      const away = Math.abs(drawn.valToPos(value, "y") - top);
      if (away < distance) { distance = away; best = line.algorithm; }
    });
    if (best !== null) { page.follow(best); }
  }

  // The values at the cursor, or where the chart rests without one.
  function show() {
    const at = place === null ? spec.rest() : place;
    heading.textContent = spec.at(at);
    plot.setAttribute("aria-valuenow", at);
    plot.setAttribute("aria-valuetext", spec.at(at));
    const order = lines.map((_, one) => one).sort((one, other) => (lines[other].y[at] ?? -1) - (lines[one].y[at] ?? -1));
    const items = (spec.sorted ? order : lines.map((_, one) => one)).map((one) => legendItem(lines[one], at));
    const focused = legend.contains(document.activeElement) ? document.activeElement.dataset.algorithm : null;
    legend.replaceChildren(...items);
    if (focused) { legend.querySelector('[data-algorithm="' + focused + '"]')?.focus(); }
  }

  function legendItem(line, at) {
    const says = [lineSample(line), element("span", { class: "name" }, line.label), " ", element("span", { class: "value" }, line.text(at))];
    if (line.algorithm === null) { return element("span", { class: "item" }, ...says); }
    const own = line.algorithm === state.follow;
    const item = button("", () => page.follow(line.algorithm), {
      class: "item", "aria-pressed": String(own), "data-algorithm": line.algorithm, title: own ? "Stop following" : "Follow",
    });
    item.append(...says);
    item.classList.toggle("faded", state.follow !== null && !own);
    return item;
  }

  function lineSample(line) {
    const colour = line.grey && line.algorithm !== state.follow ? GREY : line.colour;
    const sample = element("span", { class: "sample", "aria-hidden": "true" });
    sample.style.borderTop = "3px " + ["solid", "dashed", "dotted", "double"][line.dash] + " " + colour;
    return sample;
  }

  // Each line and what the legend says about it.
  function legendTexts() {
    const at = place === null ? spec.rest() : place;
    return { heading: spec.at(at), texts: lines.map((line) => [line, line.label + " " + line.text(at)]) };
  }

  function savePng() { pictureOf(drawn, spec, legendTexts()).toBlob((blob) => download(spec.name + ".png", blob)); }

  function saveSvg() {
    const text = new XMLSerializer().serializeToString(svgOf(drawn, spec, legendTexts()));
    download(spec.name + ".svg", new Blob([text], { type: "image/svg+xml" }));
  }

  const chart = {
    spec,
    draw,
    lines: () => lines,
    destroy() { if (drawn) { drawn.destroy(); } drawn = null; },
    resize() { if (drawn && Math.floor(plot.clientWidth) !== drawn.width) { draw(); } },
    // Move the cursor to a place without telling others.
    moveTo(at, fromHere) {
      place = at;
      if (!fromHere || !pointer || !plot.matches(":hover")) {
        quiet = true;
        const left = at === null ? -10 : drawn.valToPos(spec.x()[at], "x");
        drawn.setCursor({ left, top: at === null ? -10 : 1 });
        quiet = false;
      }
      show();
    },
  };
  return chart;
}
