// The console's own behaviour. Without this script every page can be read and every form sent.
(() => {
  "use strict";

  const format = new Intl.DateTimeFormat(undefined, {
    year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit",
  });
  const zone = format.resolvedOptions().timeZone;
  const utcFormat = new Intl.DateTimeFormat(undefined, { ...format.resolvedOptions(), timeZone: "UTC" });
  const utcTime = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", timeZone: "UTC" });

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

  // The palette: actions at once, and what the search finds while somebody types.
  const palette = document.getElementById("palette");
  const box = palette?.querySelector("input");
  let asked = "", shown = "", opensFirst = false;

  const results = () => [...palette.querySelectorAll("li:not([hidden]) > a")];

  // Before anything is typed, the first of each group, eight in all.
  function suggest() {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const item of palette.querySelectorAll(".offered li")) {
      const known = item.querySelector(".title").textContent.toLowerCase().split(/\W+/);
      item.hidden = !words.every((word) => known.some((each) => each.startsWith(word)));
    }
    let left = words.length ? Infinity : 8;
    for (const group of palette.querySelectorAll(".offered")) {
      const most = words.length ? Infinity : 5;
      group.querySelectorAll("li:not([hidden])").forEach((item, place) => { item.hidden = place >= most || left-- <= 0; });
    }
    results().forEach((link, place) => link.classList.toggle("first", place === 0 && words.length > 0));
    const [first] = results();
    if (opensFirst && shown === box.value) (first ? first.click() : box.form.submit());
  }

  function openPalette(text) {
    if (palette.open) return;
    palette.showModal();
    box.value = text;
    box.select();
    suggest();
    if (text) box.dispatchEvent(new Event("input"));
  }

  function usePalette(event) {
    const isText = event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const links = results();
      const place = links.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
      (place < 0 ? box : links[Math.min(place, links.length - 1)] || box).focus();
    } else if (event.key === "Enter" && event.target === box) {
      event.preventDefault();
      opensFirst = box.value.trim() !== "";
      const action = palette.querySelector(".offered li:not([hidden]) a.first");
      if (action) action.click();
      else suggest();
    } else if (event.key === "Escape") palette.close();
    else if (isText && event.target.matches(".results a")) box.focus();
  }

  if (palette) {
    const find = document.getElementById("find");
    for (const name of ["click", "input"]) {
      find.addEventListener(name, () => { openPalette(find.value); find.value = find.defaultValue; });
    }
    box.addEventListener("input", () => { opensFirst = false; suggest(); });
    box.addEventListener("htmx:beforeRequest", () => { asked = box.value; });
    palette.addEventListener("htmx:afterSettle", () => { shown = asked; suggest(); });
    palette.addEventListener("click", (event) => {
      if (event.target === palette || event.target.closest("[data-close]")) palette.close();
    });
  }

  function moveRow(event) {
    event.preventDefault();
    const place = event.key === "ArrowUp" ? "first" : "last";
    const button = event.target.parentElement.querySelector(`button:${place}-of-type`);
    button.focus();
    button.click();
  }

  document.addEventListener("keydown", (event) => {
    const isCommand = event.ctrlKey || event.metaKey;
    const isTyping = event.target.closest("input:not([type=checkbox]), textarea, select");
    const isSlash = event.key === "/" && !isTyping && !isCommand && !event.altKey;
    if (palette && (isSlash || (isCommand && event.key.toLowerCase() === "k"))) {
      event.preventDefault();
      openPalette("");
    } else if (palette?.open) {
      usePalette(event);
    } else if (/^Arrow(Up|Down)$/.test(event.key) && event.target.matches(".order button")) {
      moveRow(event);
    }
  });

  // Tables: for narrow screens each cell has its column's label. A column's button sorts the rows shown.
  const collator = new Intl.Collator(undefined, { numeric: true });

  function sortRows(head) {
    const body = head.closest("table").tBodies[0];
    const sign = head.ariaSort === "descending" ? -1 : 1;
    const key = ({ cells: { [head.cellIndex]: cell } }) =>
      (cell.querySelector("time")?.dateTime || cell.textContent).trim().replaceAll(",", "");
    body.append(...[...body.rows].sort((one, other) => sign * collator.compare(key(one), key(other))));
  }

  function addSortButton(head) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "sort", title: "Sorts the rows shown" });
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sortBy(head, head.ariaSort === "ascending" ? "descending" : "ascending"));
  }

  // A link among the heads is sorted by the server.
  function sortBy(head, order) {
    const link = head.querySelector("a");
    if (link && head.ariaSort !== order) location.assign(link.href);
    if (link) return;
    for (const each of head.parentElement.cells) each.ariaSort = null;
    head.ariaSort = order;
    sortRows(head);
  }

  // On a narrow screen the heads are hidden, so a menu has their orders.
  function addSortMenu(table, heads) {
    const label = Object.assign(document.createElement("label"), { className: "sort-menu", textContent: "Sort by" });
    const menu = document.createElement("select");
    const orders = heads.flatMap((head) => [[head, "ascending", "↑"], [head, "descending", "↓"]]);
    const sorted = orders.findIndex(([head, order]) => head.ariaSort === order);
    if (sorted < 0) menu.add(new Option("as listed", -1));
    orders.forEach(([head, , arrow], place) => menu.add(new Option(`${head.textContent} ${arrow}`, place, false, place === sorted)));
    menu.addEventListener("change", () => { if (menu.value >= 0) sortBy(...orders[menu.value]); });
    label.append(menu);
    table.closest(".scroll").before(label);
  }

  function prepareTables() {
    for (const table of document.querySelectorAll("table.list")) {
      const heads = [...table.tHead.rows[0].cells];
      for (const row of table.tBodies[0].rows) {
        for (const cell of row.cells) {
          cell.dataset.label = heads[cell.cellIndex].textContent.trim();
          cell.classList.toggle("blank", !cell.textContent.trim());
          for (const code of cell.querySelectorAll("code:not([title])")) code.title = code.textContent;
        }
      }
      const isSorted = table.tBodies[0].rows.length < 2 || table.querySelector(".order, .sort");
      if (!isSorted) {
        heads.filter((head) => !head.querySelector("a, .quiet")).forEach(addSortButton);
        if (table.tBodies[0].id === "rows") addSortMenu(table, heads.filter((head) => head.querySelector("a, .sort")));
      }
      table.querySelectorAll("th[aria-sort]:has(.sort)").forEach(sortRows);
    }
  }

  // What is selected in a list is counted.
  const bulk = document.getElementById("bulk");

  function countSelected() {
    const count = [...bulk.elements].filter((each) => each.checked).length;
    bulk.querySelector("[role=status]").textContent = count ? `${count} selected` : "";
  }

  if (bulk) {
    document.addEventListener("change", countSelected);
    bulk.addEventListener("reset", () => setTimeout(countSelected));
    countSelected();
  }

  // Moments are typed in the reader's zone and sent in UTC.
  function useReadersZone(input) {
    const sent = Object.assign(document.createElement("input"), { type: "hidden", name: input.name });
    const words = document.createElement("output");
    const help = document.getElementById(`${input.id}-help`);
    if (help) help.textContent = help.textContent.replace("In UTC.", `In your time zone (${zone}).`);
    input.removeAttribute("name");
    input.after(sent, words);
    const start = new Date(`${input.value}Z`);
    if (input.value) input.value = new Date(start - start.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
    const show = () => {
      const moment = new Date(input.value);
      const isGiven = !Number.isNaN(moment.getTime());
      sent.value = isGiven ? moment.toISOString().slice(0, 19) : "";
      const isSameDay = isGiven && moment.getDate() === moment.getUTCDate();
      const utc = isGiven && (isSameDay ? utcTime : utcFormat).format(moment);
      words.textContent = isGiven ? `${format.format(moment)} your time, ${utc} UTC` : "";
    };
    input.addEventListener("input", show);
    show();
  }

  function addCopyButtons() {
    for (const text of document.querySelectorAll("[data-copyable]:not(:has(+ .copy))")) {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", className: "copy", textContent: "Copy", ariaLabel: `Copy ${text.textContent}` });
      button.dataset.copy = "";
      text.after(button);
    }
  }

  // Where the browser gives no access to the clipboard, the text is selected.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy) || button.previousElementSibling;
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(source);
    }
  });

  // A second tap sends nothing: its answer would have no secret, and replace the one that has.
  document.addEventListener("submit", (event) => {
    if (event.target.method === "post" && event.timeStamp - event.target.dataset.sent < 2000) event.preventDefault();
    else event.target.dataset.sent = event.timeStamp;
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
    const place = event.detail.elt.closest("#more, #work, form") || document.body;
    let message = place.querySelector(".failed");
    if (!message) {
      message = document.createElement("span");
      message.className = "failed error";
      message.setAttribute("role", "alert");
      place.append(message);
    }
    message.textContent = "This could not be loaded. Load the page again.";
  });

  document.addEventListener("htmx:afterSettle", () => { showTimes(document); prepareTables(); addCopyButtons(); });

  // On a phone the filters are folded until one is set.
  const fold = document.querySelector(".fold");
  if (fold && matchMedia("(max-width: 40rem)").matches) fold.open = !!fold.querySelector(".buttons a");

  showTimes(document);
  prepareTables();
  for (const nav of document.querySelectorAll("nav")) {
    const link = nav.querySelector("[aria-current]");
    if (link && nav.scrollWidth > nav.clientWidth) nav.scrollLeft = link.offsetLeft - nav.clientWidth / 3;
  }
  addCopyButtons();
  document.querySelectorAll("input[type=datetime-local]").forEach(useReadersZone);
  for (const input of document.querySelectorAll("input[name=zone]")) input.value = zone;
  for (const input of document.querySelectorAll("[data-expected]")) guardConfirmation(input);
  const wrong = document.querySelector("[aria-invalid=true]");
  if (wrong) wrong.focus();
})();
