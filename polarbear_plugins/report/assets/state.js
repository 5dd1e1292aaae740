// What the reader has set.  It is part of the address, so that a link shows the same.

const LONGEST = 300; // characters of a text from the address

function makeState(data) {
  const last = data.times.length - 1;
  const knots = data.own ? data.own.knots.length : 0;
  const defaults = {
    follow: null, axis: data.log ? "log" : "linear", budget: last, zoom: null, roundsZoom: null,
    draw: new Array(knots).fill(50), members: [], pair: firstPair(data), sort: null, filter: "", choice: {},
  };
  return {
    ...defaults,
    defaults,
    listeners: [],
    waiting: null,
    set(changes) {
      Object.assign(this, changes);
      this.listeners.forEach((listener) => listener(changes));
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => {
        window.history.replaceState(null, "", "#" + (this.fragment() || ""));
      }, 150);
    },
    fragment() { return toFragment(namesAndNumbers(this, data)); },
    read(fragment) {
      const wanted = fromFragment(fragment);
      Object.assign(this, defaults, checkedState(wanted, data, defaults));
      return Object.keys(wanted).length > 0;
    },
  };
}

// The two that are likeliest best, over all timepoints.
function firstPair(data) {
  if (!data.pairs) { return null; }
  const total = (one) => data.best[data.left.indexOf(one)].reduce((sum, p) => sum + p, 0);
  const inside = [...data.left].sort((one, other) => total(other) - total(one));
  return [...inside, ...data.pairs.algorithms.filter((one) => !inside.includes(one))].slice(0, 2);
}

function namesAndNumbers(state, data) {
  const changed = (key) => String(state[key]) !== String(state.defaults[key]);
  return {
    ...state.choice,
    follow: state.follow === null ? null : data.names[state.follow],
    axis: changed("axis") ? state.axis : null,
    budget: changed("budget") ? data.times[state.budget] : null,
    zoom: state.zoom ? state.zoom.map((time) => Number(time.toPrecision(6))).join(",") : null,
    rounds: state.roundsZoom ? state.roundsZoom.map((round) => Number(round.toPrecision(6))).join(",") : null,
    draw: changed("draw") ? state.draw.join(",") : null,
    members: state.members.length ? state.members.join(",") : null,
    pair: changed("pair") ? state.pair.join(",") : null,
    sort: state.sort ? state.sort.join(",") : null,
    filter: state.filter,
  };
}

// Only what can be meant: an address may hold anything.
function checkedState(wanted, data, defaults) {
  const numbers = (key) => (wanted[key] || "").slice(0, LONGEST).split(",").map(Number);
  const found = { choice: {} };
  ["preference", "risk"].forEach((key) => { if (wanted[key]) { found.choice[key] = wanted[key].slice(0, LONGEST); } });
  const follow = data.names.indexOf(wanted.follow);
  if (follow >= 0) { found.follow = follow; }
  if (wanted.axis === "linear" || (wanted.axis === "log" && data.canLog)) { found.axis = wanted.axis; }
  if (wanted.budget && Number.isFinite(Number(wanted.budget))) { found.budget = nearest(data.times, Number(wanted.budget)); }
  const zoom = numbers("zoom");
  if (zoom.length === 2 && zoom[0] < zoom[1]) { found.zoom = zoom; }
  const rounds = numbers("rounds");
  if (rounds.length === 2 && rounds[0] < rounds[1]) { found.roundsZoom = rounds; }
  const draw = numbers("draw");
  if (draw.length === defaults.draw.length && draw.every((height) => height >= 0 && height <= 100)) { found.draw = draw; }
  const members = wanted.members ? numbers("members") : [];
  if (members.every((one) => data.left.includes(one))) { found.members = [...new Set(members)].slice(0, 3); }
  const pair = numbers("pair");
  if (data.pairs && pair.length === 2 && pair[0] !== pair[1] && pair.every((one) => data.pairs.algorithms.includes(one))) {
    found.pair = pair;
  }
  const sort = numbers("sort");
  if (wanted.sort && sort.length === 2 && sort[0] >= 0 && [1, -1].includes(sort[1])) { found.sort = sort; }
  if (wanted.filter) { found.filter = wanted.filter.slice(0, LONGEST); }
  return found;
}

function nearest(times, time) {
  let best = 0;
  times.forEach((other, place) => { if (Math.abs(other - time) < Math.abs(times[best] - time)) { best = place; } });
  return best;
}
