// The control of "Choose": shows the precomputed choice for a preference and a risk.

function makeChoose(choices, state, signal) {
  const [control, preference, risk, says, rows] = ["control", "preference", "risk", "choice-says", "choice-rows"].map(
    (name) => document.getElementById(name));
  const figures = document.querySelectorAll("figure[data-preference]");
  const has = (select, value) => Array.from(select.options).some((option) => option.value === value);
  const changed = () => state.set({ choice: { preference: preference.value, risk: risk.value } });
  control.hidden = false;
  control.addEventListener("change", changed, { signal });
  control.addEventListener("submit", (event) => event.preventDefault(), { signal });
  return {
    // Whether the address asks for a choice that there is.
    wanted: () => has(preference, state.choice.preference) || has(risk, state.choice.risk),
    draw() {
      [[preference, "preference"], [risk, "risk"]].forEach(([select, key]) => {
        select.value = has(select, state.choice[key]) ? state.choice[key] : select.options[0].value;
      });
      const choice = choices[preference.value][risk.value];
      says.textContent = choice.says;
      says.classList.toggle("doubtful", !choice.supported);
      rows.replaceChildren(...choice.rows.map((cells) => element("tr", {}, ...cells.map(
        (text, place) => element("td", place ? { style: "text-align:right" } : {}, text)))));
      figures.forEach((figure) => { figure.hidden = figure.dataset.preference !== preference.value; });
    },
  };
}
