// Pure functions: numbers and texts in, numbers and texts out.  Tests run them against numpy.

const MISSING = 65535;

// Numbers from 0 to 1 that encode_shares in explorer.py put into base64; NaN where one is missing.
function decodeShares(text) {
  const bytes = atob(text);
  const shares = new Float64Array(bytes.length / 2);
  for (let place = 0; place < shares.length; place += 1) {
    const steps = bytes.charCodeAt(2 * place) + 256 * bytes.charCodeAt(2 * place + 1);
    shares[place] = steps === MISSING ? NaN : steps / (MISSING - 1);
  }
  return shares;
}

// Weight of each timepoint under a preference that is linear between knots, with sum 1; null if all heights are 0.
function weightsOf(heights, knots, positions, base) {
  let right = 0;
  const weights = positions.map((x, place) => {
    while (right < knots.length - 1 && knots[right] < place) { right += 1; }
    const left = Math.max(right - 1, 0);
    const from = positions[knots[left]];
    const to = positions[knots[right]];
    const share = to > from ? Math.min(Math.max((x - from) / (to - from), 0), 1) : 0;
    return base[place] * (heights[left] + share * (heights[right] - heights[left]));
  });
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return total > 0 ? weights.map((weight) => weight / total) : null;
}

// Weight of each knot, with sum 1; null if all heights are 0.
function knotWeights(heights, spans) {
  const weights = heights.map((height, knot) => height * spans[knot]);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return total > 0 ? weights.map((weight) => weight / total) : null;
}

// Expected value of each candidate: the weighted mean of those at the knots.
function meanValues(weights, means) {
  return means[0].map((_, one) => weights.reduce((sum, weight, knot) => sum + weight * means[knot][one], 0));
}

// Values [draw][candidate] from a sample [draw][knot][candidate], both flat.
function drawnValues(weights, sample, candidates) {
  const knots = weights.length;
  const draws = sample.length / (knots * candidates);
  const values = new Float64Array(draws * candidates);
  for (let draw = 0; draw < draws; draw += 1) {
    for (let knot = 0; knot < knots; knot += 1) {
      const from = (draw * knots + knot) * candidates;
      for (let one = 0; one < candidates; one += 1) {
        values[draw * candidates + one] += weights[knot] * sample[from + one];
      }
    }
  }
  return values;
}

// P(best) and expected regret of each candidate, and the support of the chosen one: as selection/choice.py.
function judge(values, candidates, chosen, aboutAsGood) {
  const draws = values.length / candidates;
  const best = new Array(candidates).fill(0);
  const regret = new Array(candidates).fill(0);
  let support = 0;
  let squares = 0;
  for (let draw = 0; draw < draws; draw += 1) {
    const row = values.subarray(draw * candidates, (draw + 1) * candidates);
    const top = Math.max(...row);
    for (let one = 0; one < candidates; one += 1) {
      best[one] += (row[one] >= top) / draws;
      regret[one] += (top - row[one]) / draws;
    }
    support += (row[chosen] >= (top > 0 ? aboutAsGood * top : top)) / draws;
    squares += (top - row[chosen]) ** 2 / draws;
  }
  const variance = Math.max(squares - regret[chosen] ** 2, 0);
  return { best, regret, support, regretError: 2 * Math.sqrt(variance / draws) };
}

// Twice the Monte-Carlo standard error of a share of draws; not 0 where all or none of them agree.
function monteCarloError(share, draws) {
  const p = (share * draws + 1) / (draws + 2);
  return 2 * Math.sqrt(p * (1 - p) / draws);
}

// Value of a portfolio: the sum of its members' values.
function portfolioValue(values, members) {
  return members.reduce((sum, one) => sum + values[one], 0);
}

// The different members with the highest value, in the order of the candidates.
function bestPortfolio(values, size) {
  const order = values.map((_, one) => one).sort((one, other) => values[other] - values[one] || one - other);
  return order.slice(0, size).sort((one, other) => one - other);
}

// Share of the draws in which no portfolio of as many different members has a higher value.
function portfolioBest(values, candidates, members) {
  const draws = values.length / candidates;
  const inside = new Set(members);
  let found = 0;
  for (let draw = 0; draw < draws; draw += 1) {
    let lowest = Infinity;
    let highest = -Infinity;
    for (let one = 0; one < candidates; one += 1) {
      const value = values[draw * candidates + one];
      if (inside.has(one)) { lowest = Math.min(lowest, value); } else { highest = Math.max(highest, value); }
    }
    found += lowest >= highest;
  }
  return found / draws;
}

// Names as in "a, b or c".
function either(names) {
  return names.length < 2 ? names.join("") : names.slice(0, -1).join(", ") + " or " + names[names.length - 1];
}

// A number with so many digits, a dash if there is none.
function digits(value, count) {
  return value === null || Number.isNaN(value) ? "-" : String(Number(value.toPrecision(count || 3)));
}

// A probability that was counted in draws, never surer than these can show; a dash if there is none.
function probability(p, draws) {
  if (p === null || Number.isNaN(p)) { return "-"; }
  const bound = Math.max(3 / draws, 0.001);
  const digit = 10 ** Math.floor(Math.log10(bound));
  const least = Number((Math.ceil(bound / digit - 1e-9) * digit).toPrecision(1)); // rounded up
  if (p < least) { return "< " + least; }
  return p > 1 - least ? "> " + Number((1 - least).toPrecision(3)) : String(Number(p.toFixed(3)));
}

// Text of a table with commas; a cell with a comma, a quote or a line break is quoted, and null is empty.
function csv(rows) {
  const cell = (value) => {
    const text = value === null || Number.isNaN(value) ? "" : String(value);
    return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
  };
  return rows.map((row) => row.map(cell).join(",") + "\r\n").join("");
}

// Ticks of a logarithmic axis from 10^low to 10^high, at most about so many: powers of ten, or also 2 and 5 times them.
function logTicks(low, high, most) {
  const found = [[1, 2, 5], [1, 3], [1]].map((factors) => {
    const ticks = [];
    for (let power = Math.floor(low); power <= Math.ceil(high); power += 1) {
      factors.forEach((factor) => ticks.push(power + Math.log10(factor)));
    }
    return ticks.filter((tick) => tick >= low - 1e-9 && tick <= high + 1e-9);
  });
  const chosen = found.find((ticks) => ticks.length <= most) || found[2].filter(
    (_, place) => place % Math.ceil(found[2].length / most) === 0);
  if (chosen.length > 1) { return chosen; }
  const count = Math.max(Math.min(most, 4), 2);
  return Array.from({ length: count }, (_, place) => low + (high - low) * place / (count - 1));
}

// State to and from the fragment of an address; what is not set is left out.
function toFragment(state) {
  return Object.keys(state).filter((key) => state[key] !== null && state[key] !== "").map(
    (key) => encodeURIComponent(key) + "=" + encodeURIComponent(state[key])).join("&");
}

function fromFragment(fragment) {
  const found = {};
  if (fragment.includes("=")) { new URLSearchParams(fragment).forEach((value, key) => { found[key] = value; }); }
  return found;
}
