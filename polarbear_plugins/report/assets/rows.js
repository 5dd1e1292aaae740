// Sort, filter and follow in the table of the algorithms, which is part of the page.

function makeRows(data, page) {
  const { state } = page;
  const found = document.querySelector("#algorithms table");
  if (!found || found.dataset.sortable) { return { draw() {} }; }
  found.dataset.sortable = "yes";
  const body = found.tBodies[0];
  const rows = Array.from(body.rows);
  const heads = Array.from(found.tHead.rows[0].cells);
  const texts = rows.map((row) => Array.from(row.cells, (cell) => cell.textContent.trim()));
  const count = element("span", { class: "quiet", role: "status" });
  const filter = element("input", { type: "search", placeholder: "name, status or reason", input: (event) => {
    state.set({ filter: event.target.value });
  } });
  found.parentElement.before(element("div", { class: "tools explore" }, element("label", {}, "Filter ", filter), count));
  heads.forEach((head, column) => {
    const says = head.textContent;
    head.replaceChildren(button(says, () => {
      const [now, way] = state.sort || [null, 1];
      state.set({ sort: now !== column ? [column, 1] : way === 1 ? [column, -1] : null });
    }, { class: "sort" }));
  });
  rows.forEach((row, place) => {
    const one = data.names.indexOf(texts[place][0]);
    if (one < 0) { return; }
    row.dataset.algorithm = one;
    const inside = row.cells[0].firstElementChild || row.cells[0];
    inside.replaceChildren(button(texts[place][0], (event) => { event.stopPropagation(); page.follow(one); }, { class: "plain" }));
    row.addEventListener("click", () => page.follow(one));
  });
  const number = (text) => Number(text.replace(/,/g, "").replace(/^out in round /, ""));
  const compare = (one, other) => {
    const [a, b] = [number(one), number(other)];
    if (!Number.isNaN(a) && !Number.isNaN(b)) { return a - b; }
    return Number.isNaN(a) - Number.isNaN(b) || one.localeCompare(other);
  };
  return {
    draw() {
      const order = rows.map((_, place) => place);
      const [column, way] = state.sort || [null, 1];
      if (column !== null && column < heads.length) {
        order.sort((one, other) => way * compare(texts[one][column], texts[other][column]) || one - other);
      }
      heads.forEach((head, place) => {
        if (place === column) { head.setAttribute("aria-sort", way === 1 ? "ascending" : "descending"); } else {
          head.removeAttribute("aria-sort");
        }
      });
      body.append(...order.map((place) => rows[place]));
      const wanted = state.filter.toLowerCase();
      let shown = 0;
      rows.forEach((row, place) => {
        row.hidden = !texts[place].join("\n").toLowerCase().includes(wanted);
        shown += !row.hidden;
        const one = Number(row.dataset.algorithm);
        row.classList.toggle("followed", one === state.follow);
        row.querySelector("button.plain")?.setAttribute("aria-pressed", String(one === state.follow));
      });
      if (document.activeElement !== filter) { filter.value = state.filter; }
      count.textContent = wanted ? shown + " of " + rows.length + " shown" : "";
    },
  };
}
