// Keeps the strip at the top of the page up to date.  Texts are inserted as text, never as HTML.
(function () {
  "use strict";
  var get = function (id) { return document.getElementById(id); };
  var race = get("race"), says = get("race-says"), lines = get("race-lines"), problem = get("race-problem");
  var stop = get("race-stop"), stopSays = get("race-stop-says"), show = get("race-show"), follow = get("race-follow");
  var shown = race.dataset.report;
  var lastAnswer = new Date();
  var SCROLL = "polarbear-scroll", FOLLOW = "polarbear-follow";

  function remember(key, value) {
    try { sessionStorage.setItem(key, value); } catch (error) { /* not allowed: then nothing is remembered */ }
  }

  function recall(key) {
    try { return sessionStorage.getItem(key); } catch (error) { return null; }
  }

  function forget(key) {
    try { sessionStorage.removeItem(key); } catch (error) { /* as above */ }
  }

  function reload() {
    remember(SCROLL, String(window.scrollY));
    location.reload(); // keeps the part of the address after #
  }

  function write(element, text) {
    if (element.textContent !== text) { element.textContent = text; }
  }

  function update(status) {
    write(says, status.says);
    says.dataset.phase = status.phase;
    var list = document.createElement("dl");
    status.lines.forEach(function (line) {
      var label = document.createElement("dt"), text = document.createElement("dd");
      label.textContent = line[0];
      text.textContent = line[1];
      list.append(label, text);
    });
    lines.replaceChildren(list);
    write(problem, status.problem);
    problem.hidden = !status.problem;
    stop.hidden = !status.can_stop;
    write(stopSays, status.stop_says);
    var isNew = Boolean(status.report) && status.report !== shown;
    show.hidden = !isNew;
    if (isNew && follow.checked) { reload(); return true; }
    return status.last && !isNew;
  }

  function poll() {
    fetch("status", { cache: "no-store", credentials: "omit" })
      .then(function (answer) {
        if (!answer.ok) { throw new Error(String(answer.status)); }
        return answer.json();
      })
      .then(function (status) {
        lastAnswer = new Date();
        return update(status);
      })
      .catch(function () {
        says.dataset.phase = "lost";
        stop.hidden = true;
        write(says, "No answer since " + lastAnswer.toLocaleTimeString() + ": what showed this page has ended. " +
          "Everything below is as it was then.");
        return false;
      })
      .then(function (done) { if (!done) { setTimeout(poll, 1000); } });
  }

  stop.addEventListener("click", function () {
    stop.disabled = true;
    fetch("stop", { method: "POST", credentials: "omit" })
      .then(function (answer) { return answer.ok ? answer.json() : { problem: "The race could not be asked to stop." }; })
      .catch(function () { return { problem: "The race could not be asked to stop: no answer." }; })
      .then(function (answer) {
        stop.disabled = false;
        write(stopSays, answer.problem);
      });
  });
  show.addEventListener("click", reload);
  follow.checked = recall(FOLLOW) !== "no";
  follow.addEventListener("change", function () { remember(FOLLOW, follow.checked ? "yes" : "no"); });

  var scroll = recall(SCROLL);
  if (scroll !== null) {
    forget(SCROLL);
    if ("scrollRestoration" in history) { history.scrollRestoration = "manual"; }
    window.addEventListener("load", function () { window.scrollTo(0, Number(scroll)); });
  }
  poll();
})();
