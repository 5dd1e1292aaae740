// The chart as a picture to save: its title, what is drawn, and its legend with the values at the cursor.

const FONT = '12px system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif';

// The chart with its title and its legend as one picture, dark on white.
function pictureOf(drawn, spec, { heading, texts }) {
  const ratio = uPlot.pxRatio;
  const from = drawn.ctx.canvas;
  const canvas = document.createElement("canvas");
  const ctx = canvas.getContext("2d");
  const line = 18 * ratio;
  canvas.width = from.width;
  canvas.height = from.height + line * (texts.length + 3.5);
  ctx.fillStyle = "#fff";
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.drawImage(from, 0, 1.5 * line);
  ctx.fillStyle = INK;
  ctx.font = FONT.replace("12px", 13 * ratio + "px");
  ctx.fillText(spec.title, 8 * ratio, line);
  ctx.font = FONT.replace("12px", 12 * ratio + "px");
  ctx.fillText(heading, 8 * ratio, from.height + 2.5 * line);
  texts.forEach(([one, says], place) => {
    const y = from.height + line * (place + 3.5);
    ctx.strokeStyle = one.grey ? GREY : one.colour;
    ctx.lineWidth = 2.5 * ratio;
    ctx.setLineDash(DASHES[one.dash].map((part) => part * ratio));
    ctx.beginPath();
    ctx.moveTo(8 * ratio, y - 4 * ratio);
    ctx.lineTo(34 * ratio, y - 4 * ratio);
    ctx.stroke();
    ctx.fillText(says, 42 * ratio, y);
  });
  return canvas;
}

// The parser knows the name of this language, so that no address stands in the page.
const SVG = new DOMParser().parseFromString("<svg></svg>", "text/html").body.firstChild.namespaceURI;
const INSIDE = "inside"; // what is clipped to the axes

function svgElement(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
  made.append(...children);
  return made;
}

// Attributes of a colour that has its strength in the last two of nine characters.
function paint(what, colour) {
  return colour.length === 9
    ? { [what]: colour.slice(0, 7), [what + "-opacity"]: (parseInt(colour.slice(7), 16) / 255).toFixed(2) } : { [what]: colour };
}

// Points of a line as commands of a path, which breaks where one is missing.
function pathOf(xs, ys) {
  let open = false;
  return xs.map((x, place) => {
    if (ys[place] === null) { open = false; return ""; }
    const command = open ? "L" : "M";
    open = true;
    return command + x.toFixed(2) + " " + ys[place].toFixed(2);
  }).join("");
}

// Between an upper and a lower line, in pieces where both are known.
function bandOf(xs, upper, lower) {
  const pieces = [[]];
  xs.forEach((_, place) => {
    if (upper[place] === null || lower[place] === null) { pieces.push([]); } else { pieces[pieces.length - 1].push(place); }
  });
  const at = (line) => (place) => xs[place].toFixed(2) + " " + line[place].toFixed(2);
  return pieces.filter((piece) => piece.length).map(
    (piece) => "M" + [...piece.map(at(upper)), ...[...piece].reverse().map(at(lower))].join("L") + "Z").join("");
}

// The same as lines and texts: what uPlot was given, at the places where it drew it.
function svgOf(drawn, spec, { heading, texts }) {
  const line = 18;
  const top = 1.5 * line;
  const [width, height] = [drawn.width, drawn.height + line * (texts.length + 3.5)];
  const box = Object.fromEntries(Object.entries(drawn.bbox).map(([side, size]) => [side, size / uPlot.pxRatio]));
  const across = (x) => drawn.valToPos(x, "x") + box.left;
  const up = (y) => (y === null || y === undefined ? null : drawn.valToPos(y, "y") + box.top);
  const write = (x, y, says, more) => svgElement("text", { x: x.toFixed(2), y: y.toFixed(2), fill: INK, ...more }, says);
  const rule = (x1, y1, x2, y2, more) => svgElement("line", { x1, y1, x2, y2, stroke: GRID, ...more });
  const { x: { min, max }, y } = drawn.scales;
  const bottom = box.top + box.height;
  const axes = [
    ...spec.xTicks(min, max, Math.floor(width / 70)).flatMap((tick) => [rule(across(tick), box.top, across(tick), bottom),
      write(across(tick), bottom + 18, spec.xText(tick), { "text-anchor": "middle" })]),
    ...(spec.yTicks || evenTicks(0, y.max, 6)).flatMap((tick) => [rule(box.left, up(tick), box.left + box.width, up(tick)),
      write(box.left - 8, up(tick) + 4, (spec.yText || compact)(tick), { "text-anchor": "end" })]),
    write(box.left + box.width / 2, bottom + 42, spec.xLabel(), { "text-anchor": "middle" }),
  ];
  const xs = drawn.data[0].map(across);
  const lines = drawn.data.map((column) => column.map(up));
  const colour = (found, place) => (typeof found === "function" ? found(drawn, place) : found);
  const bands = drawn.bands.map((band) => svgElement("path", {
    d: bandOf(xs, lines[band.series[0]], lines[band.series[1]]), ...paint("fill", colour(band.fill, band.series[0])) }));
  const strokes = drawn.series.flatMap((series, place) => {
    const tone = place ? colour(series.stroke, place) : "transparent";
    if (tone === "transparent") { return []; }
    const dots = spec.places <= 30 ? xs.flatMap((x, at) => (lines[place][at] === null ? [] : [svgElement("circle", {
      cx: x.toFixed(2), cy: lines[place][at].toFixed(2), r: 2.5, ...paint("fill", tone) })])) : [];
    return [svgElement("path", { d: pathOf(xs, lines[place]), fill: "none", ...paint("stroke", tone), "stroke-width": series.width,
      "stroke-dasharray": (series.dash || []).join(" ") }), ...dots];
  });
  const marks = spec.marks().map((mark) => rule(...(mark.x !== undefined
    ? [across(mark.x), box.top, across(mark.x), bottom] : [box.left, up(mark.y), box.left + box.width, up(mark.y)]),
  { stroke: mark.colour || "#0b5cad", "stroke-dasharray": "4 3" }));
  const frame = { x: box.left - 4, y: box.top - 4, width: box.width + 8, height: box.height + 8 };
  return svgElement("svg", { viewBox: "0 0 " + width + " " + height, width, height, "font-family": "sans-serif", "font-size": 12 },
    svgElement("title", {}, spec.title),
    svgElement("clipPath", { id: INSIDE }, svgElement("rect", frame)),
    svgElement("rect", { width, height, fill: "#fff" }),
    write(8, line, spec.title, { "font-size": 13 }),
    svgElement("g", { transform: "translate(0 " + top + ")" }, ...axes,
      svgElement("g", { "clip-path": "url" + "(#" + INSIDE + ")" }, ...bands, ...strokes, ...marks)),
    write(8, drawn.height + 2.5 * line, heading, {}),
    ...texts.flatMap(([one, says], place) => {
      const at = drawn.height + line * (place + 3.5);
      return [rule(8, at - 4, 34, at - 4, { stroke: one.grey ? GREY : one.colour, "stroke-width": 2.5,
        "stroke-dasharray": DASHES[one.dash].join(" ") }), write(42, at, says, {})];
    }));
}
