// A time preference that the reader draws, the choice under it, and the value of a portfolio.

const FULL = 100; // the greatest height
const LITTLE = 0.001; // a smaller regret has no figure: draws can hardly tell it from 0

// Everything about the choice under a drawn preference; null if all heights are 0.
function judgeOwn(own, sample, heights, aboutAsGood) {
  const weights = knotWeights(heights, own.spans);
  if (!weights) { return null; }
  const values = meanValues(weights, own.means);
  const drawn = drawnValues(weights, sample, values.length);
  const chosen = values.indexOf(Math.max(...values));
  return { values, drawn, chosen, ...judge(drawn, values.length, chosen, aboutAsGood) };
}

// The choice in words: supported only if the sample shows it beyond its Monte-Carlo error.
function ownText(found, names, own, data) {
  const { chosen, support, best, regret, regretError } = found;
  const error = monteCarloError(support, own.worth);
  const sample = own.draws.toLocaleString("en") + " of " + data.draws.toLocaleString("en") + " draws";
  const sure = "P(best) " + withError(best[chosen], own.worth) + ", support " + withError(support, own.worth) + ", from " + sample;
  const little = regret[chosen] + regretError < LITTLE;
  const cost = "Expected regret " + (little ? "below " + LITTLE : digits(regret[chosen], 2) + " ± " + digits(regretError, 1)) +
    ": on average over what is uncertain, the best choice would be first among those that are left on " +
    (little ? "less than " + 100 * LITTLE : digits(100 * regret[chosen], 2)) + " more of 100 new instances than " + names[chosen] + ".";
  if (support - error >= data.supported) { return "Choose " + names[chosen] + " (" + sure + "). " + cost; }
  const rivals = names.map((_, one) => one).filter((one) => one !== chosen && best[one] >= data.worthNaming)
    .sort((one, other) => best[other] - best[one]);
  const others = rivals.length ? "; " + either(rivals.map((one) => names[one])) + " may be best" : "";
  const why = support < data.supported ? "No choice is supported"
    : "Too close to tell from this sample whether a choice is supported (the limit is " + data.supported + ")";
  return why + ": " + names[chosen] + " is highest (" + sure + ")" + others + ". " + cost;
}

// A bound of what the draws can show holds its error already.
function withError(share, draws) {
  const says = probability(share, draws);
  return /[<>]/.test(says) ? says : says + " ± " + digits(monteCarloError(share, draws), 1);
}

function makePreference(root, data, page) {
  const { state } = page;
  const { own } = data;
  const names = data.left.map((one) => data.names[one]);
  const sample = decodeShares(own.sample);
  const says = element("p", { class: "says", id: "own-says" });
  const result = element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Values under your preference" });
  const sketch = makeSketch(data, (draw) => set(draw));
  const inputs = own.knots.map((knot, place) => element("input", {
    type: "range", min: 0, max: FULL, step: 1, "aria-label": "Weight at " + data.timeTexts[knot],
    input: (event) => set(state.draw.map((height, other) => (other === place ? Number(event.target.value) : height))),
  }));
  const set = (draw) => { state.set({ draw }); page.announce(says.textContent); };
  const shape = (height) => set(own.knots.map((_, place) => Math.round(FULL * height(place / (own.knots.length - 1)))));
  const perUnit = data.log ? "per factor of the budget" : "per unit of time";
  root.replaceChildren(
    element("h3", {}, "Draw your own preference"),
    element("p", {}, "Draw with the mouse or a finger, or use the sliders: the higher the line, the more a budget there matters (" +
      perUnit + "). A flat line is the preference " + (data.log ? "log-uniform" : "uniform") + "."),
    element("div", { class: "card" }, sketch.canvas),
    element("fieldset", { class: "knots" }, element("legend", {}, "Weight at"), ...inputs.map(
      (input, place) => element("label", {}, input, element("span", {}, compact(data.times[own.knots[place]]))))),
    element("div", { class: "tools" }, button("Flat", () => shape(() => 0.5)), button("Early", () => shape((x) => 1 - x)),
      button("Late", () => shape((x) => x)), button("Weights (CSV)", () => downloadCsv("weights.csv", weightRows()))),
    says, result,
    ...[...data.notes.always, ...data.notes.several].map((note) => element("p", { class: "quiet" }, note)));

  function positions() { return data.times.map((time) => (data.log ? Math.log(time) : time)); }

  function weightRows() {
    const weights = weightsOf(state.draw, own.knots, positions(), own.base) || data.times.map(() => 0);
    return [["timepoint", "weight"], ...data.times.map((time, at) => [time, weights[at]])];
  }

  return {
    found: () => judgeOwn(own, sample, state.draw, data.aboutAsGood),
    draw() {
      inputs.forEach((input, place) => { input.value = state.draw[place]; });
      sketch.draw(state.draw);
      const found = this.found();
      says.textContent = found ? ownText(found, names, own, data) : "All weights are 0: raise the line somewhere.";
      says.classList.toggle("doubtful", !found || !says.textContent.startsWith("Choose "));
      if (!found) { result.replaceChildren(); return; }
      const order = names.map((_, one) => one).sort((one, other) => found.values[other] - found.values[one]);
      result.replaceChildren(table(["algorithm", "value", "P(best) ± Monte-Carlo error", "expected regret"], order.map((one) => [
        names[one], digits(found.values[one]), withError(found.best[one], own.worth),
        found.regret[one] < LITTLE ? "< " + LITTLE : digits(found.regret[one], 2)]),
      "Value: the probability of being the best of those that are left, weighted by the line; from all draws"));
    },
  };
}

// The line of the preference; dragging on it moves the nearest knots.
function makeSketch(data, change) {
  const { own } = data;
  const canvas = element("canvas", { class: "sketch", role: "img", "aria-label": "The preference as a line; the sliders below set it too" });
  const x = own.knots.map((knot) => (data.log ? Math.log(data.times[knot]) : data.times[knot]));
  const share = x.map((at) => (at - x[0]) / (x[x.length - 1] - x[0]));
  const margin = 12;
  let heights = [];
  let last = null;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    const across = (event.clientX - box.left - margin) / (box.width - 2 * margin);
    const up = 1 - (event.clientY - box.top - margin) / (box.height - 2 * margin);
    let nearestKnot = 0;
    share.forEach((at, knot) => { if (Math.abs(at - across) < Math.abs(share[nearestKnot] - across)) { nearestKnot = knot; } });
    return { knot: nearestKnot, height: Math.round(FULL * Math.min(Math.max(up, 0), 1)) };
  };
  const drag = (event) => {
    const now = place(event);
    const from = last || now;
    const draw = [...heights];
    // A quick stroke passes knots between two events.
    for (let knot = Math.min(from.knot, now.knot); knot <= Math.max(from.knot, now.knot); knot += 1) {
      const part = now.knot === from.knot ? 1 : (knot - from.knot) / (now.knot - from.knot);
      draw[knot] = Math.round(from.height + part * (now.height - from.height));
    }
    last = now;
    change(draw);
  };
  canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); last = null; drag(event); });
  canvas.addEventListener("pointermove", (event) => { if (event.buttons) { drag(event); } });
  const draw = (now) => {
    heights = now;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.max(canvas.clientWidth, 100) * ratio;
    canvas.height = Math.max(canvas.clientHeight, 60) * ratio;
    const ctx = canvas.getContext("2d");
    const at = (knot) => [margin * ratio + share[knot] * (canvas.width - 2 * margin * ratio),
      canvas.height - margin * ratio - heights[knot] / FULL * (canvas.height - 2 * margin * ratio)];
    ctx.beginPath();
    heights.forEach((_, knot) => ctx.lineTo(...at(knot)));
    ctx.strokeStyle = "#0b5cad";
    ctx.lineWidth = 2 * ratio;
    ctx.stroke();
    ctx.lineTo(at(heights.length - 1)[0], canvas.height - margin * ratio);
    ctx.lineTo(at(0)[0], canvas.height - margin * ratio);
    ctx.fillStyle = "#0b5cad22";
    ctx.fill();
    ctx.fillStyle = "#0b5cad";
    heights.forEach((_, knot) => { ctx.beginPath(); ctx.arc(...at(knot), 4 * ratio, 0, 7); ctx.fill(); });
  };
  return { canvas, draw };
}

function makePortfolio(root, data, page, preference) {
  const { state } = page;
  const names = data.left.map((one) => data.names[one]);
  const says = element("p", { class: "says", id: "portfolio-says" });
  const boxes = data.left.map((one) => element("input", { type: "checkbox", change: (event) => {
    const members = data.left.filter((other) => (other === one ? event.target.checked : state.members.includes(other)));
    state.set({ members });
    page.announce(says.textContent);
  } }));
  root.replaceChildren(element("h3", {}, "Portfolio"),
    element("p", {}, "Pick two or three to run in parallel, each with the whole budget; the best result counts. Its value under " +
      "your preference above is the probability that the best of those that are left is in it."),
    element("fieldset", { class: "members" }, element("legend", {}, "Members"), ...boxes.map(
      (box, place) => element("label", {}, box, names[place]))), says);
  return {
    draw() {
      boxes.forEach((box, place) => {
        box.checked = state.members.includes(data.left[place]);
        box.disabled = !box.checked && state.members.length >= 3;
      });
      const members = state.members.map((one) => data.left.indexOf(one));
      const found = preference.found();
      if (members.length < 2) { says.textContent = "Pick two or three."; return; }
      if (!found) { says.textContent = "All weights are 0: raise the line above somewhere."; return; }
      says.textContent = portfolioText(found, members, names, data.own, data.draws);
    },
  };
}

function portfolioText(found, members, names, own, allDraws) {
  const value = portfolioValue(found.values, members);
  const best = bestPortfolio(found.values, members.length);
  const title = (places) => places.map((one) => names[one]).join(" + ");
  const p = portfolioBest(found.drawn, names.length, members);
  const sure = "P(no other " + (members.length === 2 ? "pair" : "three") + " has a higher value) " + withError(p, own.worth) +
    ", from " + own.draws.toLocaleString("en") + " of " + allDraws.toLocaleString("en") + " draws";
  const says = title(members) + ": value " + digits(value) + ", so on " + digits(100 * value) + " of 100 new instances the best of " +
    "those that are left is in it. " + sure + ".";
  return String(best) === String([...members].sort((one, other) => one - other))
    ? says + " It has the highest expected value of its size."
    : says + " The highest expected value of this size has " + title(best) + ", " + digits(portfolioValue(found.values, best)) + ".";
}
