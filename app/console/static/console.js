// The console's own behaviour. Without this script every page can be read and every form sent.
(() => {
  "use strict";

  const format = new Intl.DateTimeFormat(undefined, {
    year: "numeric", month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit",
  });

  // Times: in the reader's zone, with UTC as the tool tip.
  function showTimes(root) {
    for (const time of root.querySelectorAll("time:not([data-shown])")) {
      const moment = new Date(time.dateTime);
      if (!Number.isNaN(moment.getTime())) time.textContent = format.format(moment);
      time.dataset.shown = "yes";
    }
  }

  // The button of a confirmation works once the expected text was typed.
  function guardConfirmation(input) {
    const button = input.form.querySelector(".buttons button");
    const check = () => { button.disabled = input.value.trim() !== input.dataset.expected; };
    input.addEventListener("input", check);
    check();
  }

  function moveInResults(event) {
    const results = [...document.querySelectorAll("#results a")];
    if (!results.length) return;
    const place = results.indexOf(document.activeElement);
    const box = document.getElementById("find");
    if (place < 0 && document.activeElement !== box) return;
    event.preventDefault();
    const next = place + (event.key === "ArrowDown" ? 1 : -1);
    (next < 0 ? box : results[Math.min(next, results.length - 1)]).focus();
  }

  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, textarea, select");
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const box = document.getElementById("find");
      if (box) { event.preventDefault(); box.focus(); box.select(); }
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      moveInResults(event);
    } else if (event.key === "Enter" && event.target.id === "find") {
      const first = document.querySelector("#results:not(.htmx-request) a");
      if (first && event.target.value.trim() === event.target.defaultValue.trim()) {
        event.preventDefault();
        first.click();
      }
    }
  });

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  });

  // Errors of htmx's own requests: the page says so, and the link below still works.
  document.addEventListener("htmx:responseError", (event) => {
    const place = event.detail.elt.closest("#more, form") || document.body;
    let message = place.querySelector(".failed");
    if (!message) {
      message = document.createElement("span");
      message.className = "failed error";
      message.setAttribute("role", "alert");
      place.append(message);
    }
    message.textContent = "This could not be loaded. Load the page again.";
  });

  document.addEventListener("htmx:afterSettle", () => showTimes(document));

  showTimes(document);
  for (const input of document.querySelectorAll("[data-expected]")) guardConfirmation(input);
  const wrong = document.querySelector("[aria-invalid=true]");
  if (wrong) wrong.focus();
})();
