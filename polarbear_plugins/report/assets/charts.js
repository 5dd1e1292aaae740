// The four charts: ratings, P(best), wins of a pair over time; and P(dominated) over rounds.

function timeAxis(data, state) {
  const position = (time) => (state.axis === "log" ? Math.log10(time) : time);
  const unit = data.unit ? " " + data.unit : "";
  const positive = (time) => Math.max(time, Number.MIN_VALUE);
  return {
    zoomKey: "zoom",
    places: data.times.length,
    x: () => data.times.map(position),
    xTicks: (low, high, most) => (state.axis === "log" ? logTicks(low, high, most) : evenTicks(low, high, most)),
    xText: (x) => compact(state.axis === "log" ? 10 ** x : x),
    xLabel: () => "time" + (data.unit ? " (" + data.unit + ")" : "") + (state.axis === "log" ? ", logarithmic" : ""),
    toZoom: (x) => (state.axis === "log" ? 10 ** x : x),
    zoom: () => state.zoom && state.zoom.map((time) => position(state.axis === "log" ? positive(time) : time)),
    at: (place) => "At " + data.timeTexts[place] + unit,
    rest: () => state.budget,
    marks: () => (data.times.length > 1 ? [{ x: position(data.times[state.budget]) }] : []),
  };
}

function evenTicks(low, high, most) {
  const rough = (high - low) / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const ticks = [];
  for (let tick = Math.ceil(low / step - 1e-9); tick * step <= high + 1e-9 * step; tick += 1) { ticks.push(tick * step); }
  return ticks;
}

function compact(number) {
  const rounded = Number(number.toPrecision(3));
  return Math.abs(rounded) >= 1e6 || (rounded !== 0 && Math.abs(rounded) < 1e-3)
    ? rounded.toExponential().replace("e+", "e") : rounded.toLocaleString("en");
}

function algorithmLine(data, one) {
  return {
    label: data.names[one], algorithm: one, colour: data.colours[one], dash: data.dashes[one], grey: !data.left.includes(one),
  };
}

// No rating is 0.
function rating(share) {
  return share < 0.0005 ? "< 0.001" : share.toFixed(3);
}

function ratingsSpec(data, state) {
  const { mean, low, high } = data.ratings;
  return {
    ...timeAxis(data, state),
    name: "ratings",
    title: "Mean ratings and 90 % bands",
    caption: data.captions.ratings,
    summary: () => data.summaries.ratings,
    sorted: true,
    top: (max) => Math.min(Math.max((max || 0) * 1.05, 0.02), 1),
    lines: () => data.names.map((_, one) => ({
      ...algorithmLine(data, one),
      y: mean[one], low: low[one], high: high[one],
      text: (at) => (mean[one][at] === null ? "-"
        : rating(mean[one][at]) + " (" + rating(low[one][at]) + " to " + rating(high[one][at]) + ")"),
    })),
    columns: () => ["time", ...data.names],
    rows() { return timeRows(data, this.lines()); },
    csv: () => [["timepoint", "algorithm", "mean", "low", "high"], ...data.times.flatMap((time, at) => data.names.map(
      (name, one) => [time, name, mean[one][at], low[one][at], high[one][at]]))],
  };
}

function timeRows(data, lines) {
  return data.times.map((_, at) => [data.timeTexts[at], ...lines.map((line) => line.text(at))]);
}

function bestSpec(data, state) {
  return {
    ...timeAxis(data, state),
    name: "timeline",
    title: "P(best) over time",
    caption: data.captions.best,
    summary: () => data.summaries.best,
    sorted: true,
    top: () => 1,
    lines: () => data.left.map((one, place) => ({
      ...algorithmLine(data, one), y: data.best[place], text: (at) => probability(data.best[place][at], data.draws),
    })),
    columns: () => ["time", ...data.left.map((one) => data.names[one])],
    rows() { return timeRows(data, this.lines()); },
    csv: () => [["timepoint", "algorithm", "p_best"], ...data.times.flatMap((time, at) => data.left.map(
      (one, place) => [time, data.names[one], data.best[place][at]]))],
  };
}

// [mean, low, high, better] of the first against the second at each timepoint.
function winsOf(data, shares, [one, other]) {
  const place = data.pairs.pairs.findIndex(([i, j]) => (i === one && j === other) || (i === other && j === one));
  const turned = data.pairs.pairs[place][0] !== one;
  const count = data.times.length;
  const line = (which) => Array.from(shares.subarray((4 * place + which) * count, (4 * place + which + 1) * count),
    (share) => (Number.isNaN(share) ? null : turned ? 1 - share : share));
  return turned ? [line(0), line(2), line(1), line(3)] : [0, 1, 2, 3].map(line);
}

function pairSpec(data, state) {
  const shares = decodeShares(data.pairs.shares);
  const names = () => state.pair.map((one) => data.names[one]);
  const options = () => data.pairs.algorithms.map((one) => element("option", { value: one }, data.names[one]));
  const selects = [0, 1].map((which) => element("select", { change: (event) => {
    const pair = [...state.pair];
    pair[which] = Number(event.target.value);
    if (pair[0] === pair[1]) { pair[1 - which] = state.pair[which]; }
    state.set({ pair });
  } }, ...options()));
  const hundred = (share) => Number((100 * share).toFixed(1));
  return {
    ...timeAxis(data, state),
    name: "pair",
    title: "One against another",
    caption: data.captions.pair,
    controls: [element("div", { class: "tools" }, element("label", {}, "First ", selects[0]),
      element("label", {}, "Second ", selects[1]))],
    summary() {
      const [first, second] = names();
      const [mean, , , better] = winsOf(data, shares, state.pair);
      const last = mean.length - 1;
      return mean[last] === null ? first + " and " + second + " were not both observed at the last timepoint."
        : "At the last timepoint " + first + " beats " + second + " on " + hundred(mean[last]) +
          " of 100 new instances; P(" + first + " has the higher rating) " + probability(better[last], data.draws) + ".";
    },
    top: () => 1,
    lines() {
      const [mean, low, high, better] = winsOf(data, shares, state.pair);
      const [first, second] = names();
      const colour = data.colours[state.pair[0]];
      selects.forEach((select, which) => { select.value = state.pair[which]; });
      return [
        { label: first + " beats " + second, algorithm: null, colour, dash: 0, y: mean, low, high,
          text: (at) => (mean[at] === null ? "-" : "on " + hundred(mean[at]) + " of 100 instances (" + hundred(low[at]) + " to " +
            hundred(high[at]) + ")") },
        { label: "P(" + first + " has the higher rating)", algorithm: null, colour: INK, dash: 1, y: better,
          text: (at) => probability(better[at], data.draws) },
      ];
    },
    columns() { return ["time", ...this.lines().map((line) => line.label)]; },
    rows() { return timeRows(data, this.lines()); },
    csv() {
      const [mean, low, high, better] = winsOf(data, shares, state.pair);
      const six = (share) => (share === null ? null : Number(share.toFixed(5)));
      return [["timepoint", "first", "second", "win_mean", "win_low", "win_high", "p_better"],
        ...data.times.map((time, at) => [time, ...names(), ...[mean, low, high, better].map((line) => six(line[at]))])];
    },
  };
}

// Above 0.9 each further nine takes the same height, as in the static figure.
const KNEE = 0.9;
const TOP = 1 - 1e-4;
function heightOf(p) {
  return p <= KNEE ? p / KNEE : 1 + 0.45 * Math.log10((1 - KNEE) / (1 - Math.min(p, TOP)));
}

function roundsSpec(data, state) {
  const { rounds } = data;
  const shown = [0, 0.3, 0.6, 0.9, 0.99, 0.999, TOP];
  const ticks = shown.map(heightOf);
  const end = (one, at) => (rounds.out[one] === rounds.numbers[at] ? ", eliminated"
    : rounds.settled[one] === rounds.numbers[at] ? ", all pairs settled" : "");
  const before = (one, at) => (rounds.out[one] !== null && rounds.out[one] < rounds.numbers[at]
    ? "- (out in round " + rounds.out[one] + ")" : "-");
  return {
    name: "dominance",
    title: "P(dominated) over rounds",
    caption: data.captions.rounds,
    summary: () => data.summaries.rounds,
    sorted: true,
    zoomKey: "roundsZoom",
    places: rounds.numbers.length,
    x: () => rounds.numbers,
    xTicks: (low, high, most) => evenTicks(low, high, most).filter(Number.isInteger),
    xText: (x) => String(x),
    xLabel: () => "round",
    toZoom: (x) => x,
    zoom: () => state.roundsZoom,
    at: (at) => "After round " + rounds.numbers[at] + ", " + rounds.instances[at].toLocaleString("en") + " instances so far",
    rest: () => rounds.numbers.length - 1,
    marks: () => [{ y: heightOf(Math.min(rounds.alpha, TOP)), colour: "#606060" }],
    top: () => heightOf(TOP),
    yTicks: ticks,
    yText: (height) => (height >= heightOf(TOP) ? "1" : String(shown[ticks.indexOf(height)])),
    lines: () => data.names.map((_, one) => ({
      ...algorithmLine(data, one),
      grey: false,
      y: rounds.p[one].map((p) => (p === null ? null : heightOf(p))),
      text: (at) => (rounds.p[one][at] === null ? before(one, at) : probability(rounds.p[one][at], data.draws) +
        (rounds.rivals[one][at] === null ? "" : " by " + data.names[rounds.rivals[one][at]]) + end(one, at)),
    })),
    columns: () => ["round", ...data.names],
    rows() { return rounds.numbers.map((number, at) => [String(number), ...this.lines().map((line) => line.text(at))]); },
    csv: () => [["round", "algorithm", "rival", "p_dominated"], ...rounds.numbers.flatMap((number, at) => data.names.map(
      (name, one) => [number, name, rounds.rivals[one][at] === null ? null : data.names[rounds.rivals[one][at]], rounds.p[one][at]]))],
  };
}
