
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells];
  const value = (row, at) => {
    const cell = row.cells[at];
    if ("v" in cell.dataset) return Number(cell.dataset.v);
    return cell.classList.contains("n") ? null : cell.textContent;
  };
  const order = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true });
  };
  headings.forEach((heading, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    heading.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const numeric = heading.classList.contains("n");
      const now = heading.getAttribute("aria-sort");
      const next = now === "none" ? (numeric ? "descending" : "ascending")
        : now === "ascending" ? "descending" : "ascending";
      headings.forEach((other) => other.setAttribute("aria-sort", "none"));
      heading.setAttribute("aria-sort", next);
      const sign = next === "ascending" ? 1 : -1;
      const rows = [...body.rows].map((row) => [value(row, at), row]);
      rows.sort(([a], [b]) => (a === null || b === null ? order(a, b) : sign * order(a, b)));
      body.append(...rows.map(([, row]) => row));
    });
  });
  const filter = table.parentElement.previousElementSibling;
  if (!filter || !filter.classList.contains("filter")) continue;
  filter.hidden = false;
  const input = filter.querySelector("input");
  const output = filter.querySelector("output");
  input.addEventListener("input", () => {
    const words = input.value.trim().toLowerCase();
    let shown = 0;
    for (const row of body.rows) {
      const title = row.cells[0].querySelector("[title]");
      const text = row.cells[0].textContent + (title ? " " + title.title : "");
      row.hidden = !text.toLowerCase().includes(words);
      shown += !row.hidden;
    }
    output.textContent = words ? shown + " of " + body.rows.length : "";
  });
}
// Without a script the cards after the first are folded; with one they are turned over like pages.
for (const rest of document.querySelectorAll("details.rest")) {
  const list = rest.previousElementSibling;
  list.append(...rest.querySelector("ul").children);
  const cards = [...list.children];
  const size = matchMedia("(max-width: 40rem)").matches ? 9 : 24;
  const bar = document.createElement("p");
  bar.className = "pager";
  const place = document.createElement("output");
  place.setAttribute("aria-live", "polite");
  let first = 0;
  const show = (at) => {
    first = at;
    cards.forEach((card, at) => { card.hidden = at < first || at >= first + size; });
    place.textContent = first + 1 + "–" + Math.min(first + size, cards.length) + " of " + cards.length;
    back.disabled = first === 0;
    on.disabled = first + size >= cards.length;
  };
  const button = (words, step) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = words;
    made.addEventListener("click", () => {
      show(first + step);
      list.scrollIntoView({ block: "start" });
    });
    return made;
  };
  const back = button("Previous", -size), on = button("Next", size);
  bar.append(back, place, on);
  if (cards.length > size) rest.replaceWith(bar); else rest.remove();
  show(0);
}
