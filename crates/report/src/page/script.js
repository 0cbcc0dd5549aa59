
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
