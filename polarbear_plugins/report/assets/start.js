// Puts everything together.  A page whose content was replaced can start again: polarbearReport.start().

let running = null; // what a new start ends

function read(name) {
  const found = document.getElementById(name);
  return found && JSON.parse(found.textContent);
}

function makeBar(root, data, page) {
  const { state } = page;
  const axes = [["log", "Logarithmic"], ["linear", "Linear"]].map(([axis, says]) => element("label", {},
    element("input", { type: "radio", name: "axis", value: axis, change: () => state.set({ axis, zoom: null }) }), says));
  const follow = element("select", { change: (event) => {
    state.set({ follow: event.target.value === "" ? null : Number(event.target.value) });
  } }, element("option", { value: "" }, "nobody"), ...data.names.map((name, one) => element("option", { value: one }, name)));
  const link = element("input", { type: "text", readonly: true, hidden: true, "aria-label": "Link to what is shown" });
  const status = element("span", { class: "quiet", role: "status" });
  const copy = button("Copy link", () => {
    link.value = window.location.href.split("#")[0] + "#" + state.fragment();
    link.hidden = false;
    link.select();
    status.textContent = "Copy it from the field.";
    navigator.clipboard?.writeText(link.value).then(() => { status.textContent = "Copied."; }, () => {});
  });
  root.replaceChildren(element("h2", { class: "unseen" }, "Controls of the charts"), element("div", { class: "tools" },
    element("label", {}, "Follow ", follow),
    ...(data.canLog ? [element("fieldset", { class: "axes" }, element("legend", {}, "Time"), ...axes)] : []), copy, link, status));
  return {
    draw() {
      follow.value = state.follow === null ? "" : state.follow;
      axes.forEach((label) => { label.firstElementChild.checked = label.firstElementChild.value === state.axis; });
    },
  };
}

// Tables that are wider than the page can be scrolled with the keyboard, too.
function letKeysScroll() {
  document.querySelectorAll("section > .wide, section div > .wide").forEach((wide) => {
    if (wide.scrollWidth > wide.clientWidth) { wide.tabIndex = 0; }
  });
}

function makeExplorer(data, state, signal) {
  const page = {
    state,
    charts: [],
    owner: null, // the chart whose cursor the reader moved last
    announce: announcer(document.getElementById("explore-live")),
    follow(one) {
      const follow = state.follow === one ? null : one;
      const asked = follow !== null && state.pair && data.pairs.algorithms.includes(follow) && !state.pair.includes(follow);
      state.set(asked ? { follow, pair: [follow, state.pair[0] === follow ? state.pair[1] : state.pair[0]] } : { follow });
    },
    // Show the same timepoint in all charts over time.
    hover(from, place) {
      page.owner = from;
      page.charts.filter((chart) => chart === from || (chart.spec.zoomKey === "zoom" && from.spec.zoomKey === "zoom"))
        .forEach((chart) => chart.moveTo(place, chart === from));
    },
  };
  const at = (name) => document.getElementById("explore-" + name);
  const parts = [makeBar(at("bar"), data, page), makeBudget(at("budget"), data, page), makeRows(data, page)];
  const specs = [["ratings", ratingsSpec], ...(data.left.length > 1 ? [["best", bestSpec]] : []),
    ...(data.pairs ? [["pair", pairSpec]] : []), ...(data.rounds ? [["rounds", roundsSpec]] : [])];
  page.charts = specs.map(([name, spec]) => makeChart(at(name), spec(data, state), page));
  if (data.own && data.left.length > 1) {
    const preference = makePreference(at("own"), data, page);
    parts.push(preference, ...(data.left.length > 2 ? [makePortfolio(at("portfolio"), data, page, preference)] : []));
  }
  const watching = new ResizeObserver(() => {
    page.charts.forEach((chart) => chart.resize());
    letKeysScroll();
  });
  watching.observe(document.querySelector("main"));
  signal.addEventListener("abort", () => { watching.disconnect(); page.charts.forEach((chart) => chart.destroy()); });
  const inCharts = ["follow", "axis", "budget", "zoom", "roundsZoom", "pair"];
  return {
    draw(changes) {
      parts.forEach((part) => part.draw());
      if (!changes || inCharts.some((key) => key in changes)) { page.charts.forEach((chart) => chart.draw()); }
    },
  };
}

function start() {
  if (running) { running.abort(); }
  running = new AbortController();
  const { signal } = running;
  const choices = read("choices");
  const data = read("explorer");
  if (!choices) { return; }
  const nothing = { names: [], times: [0], left: [], own: null, pairs: null, log: false, canLog: false };
  const state = makeState(data || nothing);
  const choose = makeChoose(choices, state, signal);
  const fromAddress = () => {
    const asked = state.read(window.location.hash.slice(1));
    return asked && choose.wanted();
  };
  let scroll = fromAddress();
  const views = [choose];
  if (data) {
    document.documentElement.classList.add("explorable");
    try {
      views.push(makeExplorer(data, state, signal));
      views.forEach((view) => view.draw());
    } catch (problem) { // the static figures are still there
      document.documentElement.classList.remove("explorable");
      views.length = 1;
      console.error(problem);
    }
  }
  choose.draw();
  state.listeners.push((changes) => views.forEach((view) => view.draw(changes)));
  const toSelection = () => { if (scroll) { document.getElementById("selection").scrollIntoView(); } };
  toSelection();
  window.addEventListener("hashchange", () => {
    if (!window.location.hash.includes("=")) { return; } // a link to a section
    scroll = fromAddress();
    views.forEach((view) => view.draw());
    toSelection();
  }, { signal });
}

window.polarbearReport = { start };
start();
