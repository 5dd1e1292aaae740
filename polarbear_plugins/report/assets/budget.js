// A slider for the budget: whom to choose, how surely, and what a wrong choice costs.  Python made the sentences.

function makeBudget(root, data, page) {
  const { state } = page;
  const says = element("p", { class: "says", id: "budget-says" });
  const slider = element("input", {
    type: "range", min: 0, max: data.times.length - 1, step: 1, id: "budget-slider",
    input: (event) => {
      state.set({ budget: Number(event.target.value) });
      page.announce(data.budgets[state.budget].says);
    },
  });
  const time = element("output", { for: "budget-slider" });
  const label = element("label", { class: "slider" }, element("span", {}, "Budget ", time), slider);
  const notes = data.notes.always.map((note) => element("p", { class: "quiet" }, note));
  root.replaceChildren(element("h3", {}, "Set the budget"), ...(data.times.length > 1 ? [label] : []), says, ...notes);
  return {
    draw() {
      const text = data.timeTexts[state.budget] + (data.unit ? " " + data.unit : "");
      slider.value = state.budget;
      slider.setAttribute("aria-valuetext", text);
      time.textContent = text;
      says.textContent = data.budgets[state.budget].says;
      says.classList.toggle("doubtful", !data.budgets[state.budget].supported);
    },
  };
}
