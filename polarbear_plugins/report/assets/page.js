// Elements, downloads and announcements.  Text from data becomes text, never HTML.

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  Object.entries(attributes || {}).forEach(([name, value]) => {
    if (typeof value === "function") {
      made.addEventListener(name, value);
    } else if (value !== null && value !== false) {
      made.setAttribute(name, value === true ? "" : value);
    }
  });
  made.append(...children);
  return made;
}

function button(says, action, attributes) {
  return element("button", { type: "button", click: action, ...attributes }, says);
}

function table(columns, rows, caption) {
  const head = element("tr", {}, ...columns.map((says) => element("th", { scope: "col" }, says)));
  return element("table", {}, element("caption", {}, caption), element("thead", {}, head),
    element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells.map(
      (says, place) => element(place ? "td" : "th", place ? {} : { scope: "row" }, says))))));
}

// A table that is made when it is opened.
function tableDetails(says, make) {
  const details = element("details", {}, element("summary", {}, says));
  const fill = () => {
    const old = details.querySelector(".wide");
    const inside = element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": says }, make());
    if (old) { old.replaceWith(inside); } else { details.append(inside); }
  };
  details.addEventListener("toggle", () => { if (details.open) { fill(); } });
  return { details, update: () => { if (details.open) { fill(); } } };
}

function download(name, blob) {
  const address = URL.createObjectURL(blob);
  const link = element("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

function downloadCsv(name, rows) {
  download(name, new Blob([csv(rows)], { type: "text/csv;charset=utf-8" }));
}

// Announce to screen readers what was found, once it has not changed for a moment.
function announcer(region) {
  let waiting = null;
  return (says) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { region.textContent = says; }, 600);
  };
}
