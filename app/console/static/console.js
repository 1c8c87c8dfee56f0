// The console's own behaviour. Without this script every page can be read and every form sent.
(() => {
  "use strict";

  const format = new Intl.DateTimeFormat(undefined, {
    year: "numeric", month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit",
  });

  // Times: the exact one, in the reader's zone and in UTC, as the tool tip of how long ago it is.
  function showTimes(root) {
    for (const time of root.querySelectorAll("time:not([data-shown])")) {
      const moment = new Date(time.dateTime);
      if (!Number.isNaN(moment.getTime())) {
        if ("exact" in time.dataset) time.textContent = format.format(moment);
        else time.title = `${format.format(moment)} (${time.title})`;
      }
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

  function moveRow(event) {
    event.preventDefault();
    const place = event.key === "ArrowUp" ? "first" : "last";
    const button = event.target.parentElement.querySelector(`button:${place}-of-type`);
    button.focus();
    button.click();
  }

  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input:not(#find:placeholder-shown), textarea, select");
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const box = document.getElementById("find");
      if (box) { event.preventDefault(); box.focus(); box.select(); }
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (event.target.matches(".order button")) moveRow(event);
      else moveInResults(event);
    } else if (event.key === "Enter" && event.target.id === "find") {
      const first = document.querySelector("#results:not(.htmx-request) a");
      if (first && event.target.value.trim() === event.target.defaultValue.trim()) {
        event.preventDefault();
        first.click();
      }
    }
  });

  // Where the browser gives no access to the clipboard, the text is selected.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(source);
    }
  });

  // Rows are put in order by dragging their grip, or by arrow keys on their buttons.
  let dragged = null;

  function dropPlace(event) {
    const row = event.target.closest && event.target.closest("tr[data-id]");
    const isOther = dragged && row && row !== dragged && row.dataset.group === dragged.dataset.group;
    if (!isOther) return null;
    const { top, height } = row.getBoundingClientRect();
    return { row, isBelow: event.clientY > top + height / 2 };
  }

  function showDropPlace(place) {
    for (const row of document.querySelectorAll("tr.drop-above, tr.drop-below")) {
      row.classList.remove("drop-above", "drop-below");
    }
    if (place) place.row.classList.add(place.isBelow ? "drop-below" : "drop-above");
  }

  document.addEventListener("dragstart", (event) => {
    const grip = event.target.closest && event.target.closest(".grip");
    if (!grip) return;
    dragged = grip.closest("tr");
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", dragged.dataset.id);
    event.dataTransfer.setDragImage(dragged, 0, 0);
  });
  document.addEventListener("dragover", (event) => {
    const place = dropPlace(event);
    if (place) event.preventDefault();
    showDropPlace(place);
  });
  document.addEventListener("drop", (event) => {
    const place = dropPlace(event);
    if (!place) return;
    event.preventDefault();
    let next = place.isBelow ? place.row.nextElementSibling : place.row;
    if (next && next.dataset.group !== dragged.dataset.group) next = null;
    const button = dragged.querySelector("button[name=move]");
    if (next === dragged || !button) return;
    button.value = `${dragged.dataset.id} ${next ? next.dataset.id : ""}`;
    button.click();
  });
  document.addEventListener("dragend", () => { dragged = null; showDropPlace(null); });

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
  for (const link of document.querySelectorAll("nav [aria-current]")) {
    link.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  for (const input of document.querySelectorAll("[data-expected]")) guardConfirmation(input);
  const wrong = document.querySelector("[aria-invalid=true]");
  if (wrong) wrong.focus();
})();
