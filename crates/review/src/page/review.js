"use strict";
// Everything that users chose (names of classes, ids, messages) enters the page as text, never as HTML.
(() => {
const $ = id => document.getElementById(id);
const token = new URLSearchParams(location.search).get("token");
const number = new Intl.NumberFormat("en");
const MATCHES = 60;
let overview, view, busy = false;
let filter = { scope: "suspects", pair: null };

async function ask(path, body) {
  const headers = { "X-Aleator-Token": token };
  if (body) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), cache: "no-store" });
  } catch {
    throw new Error("The program does not answer. Start it again with the same command and open the new address: every decision that was shown as made is saved.");
  }
  if (response.headers.get("Content-Type").startsWith("image/")) return response.blob();
  const text = await response.text();
  const value = text ? JSON.parse(text) : {};
  if (!response.ok) throw new Error(value.error || `The program refused this (${response.status}).`);
  return value;
}

const answer = a => a.on === null ? overview.classes[a.class] : a.on ? "on" : "off";
const titled = a => a.on === null ? overview.classes[a.class] : `${overview.classes[a.class]}: ${a.on ? "on" : "off"}`;
const percent = p => p >= 0.9995 ? "> 99.9 %" : p < 0.0005 && p > 0 ? "< 0.1 %" : `${(100 * p).toFixed(1)} %`;
const current = () => view.issues.find(issue => issue.number === view.at);
const kind = decision => decision === null ? "" : decision === "keep" ? "kept" : decision === "ambiguous" ? "unclear" : "changed";

function say(text, bad) {
  const note = document.createElement("p");
  note.textContent = text;
  if (bad) note.className = "bad";
  $("notes").append(note);
  return note;
}
let trouble = null;
function complain(text) {
  trouble?.remove();
  trouble = text ? say(text, true) : null;
}

// Pictures come with the token in a header, so that no address holds it. Those around the current one are fetched ahead.
const pictures = new Map();
function picture(issue, size) {
  const key = `${issue}/${size}`;
  if (!pictures.has(key)) {
    pictures.set(key, ask(`/picture/${issue}?size=${size}`)
      .then(found => found instanceof Blob ? { url: URL.createObjectURL(found) } : { error: found.error })
      .catch(error => { pictures.delete(key); return { error: error.message }; }));
  }
  return pictures.get(key);
}
function forget() {
  const numbers = view.issues.map(issue => issue.number).concat(...Object.values(view.references ?? {}));
  const kept = new Set(numbers.flatMap(number => [`${number}/large`, `${number}/small`]));
  for (const [key, found] of pictures) if (!kept.has(key)) {
    pictures.delete(key);
    // An image that was given the address a moment ago may not have loaded it yet.
    found.then(found => found.url && setTimeout(() => URL.revokeObjectURL(found.url), 10_000));
  }
}
function fit() {
  const image = $("picture"), stage = image.parentElement;
  const side = Math.max(image.naturalWidth, image.naturalHeight);
  const tiny = side > 0 && side <= 64;
  image.classList.toggle("tiny", tiny);
  const room = Math.min((stage.clientWidth - 24) / image.naturalWidth, (stage.clientHeight - 24) / image.naturalHeight);
  // Larger pixels than these no longer make a picture.
  const times = Math.max(1, Math.floor(Math.min(room, 48, 448 / side)));
  image.style.width = tiny ? `${times * image.naturalWidth}px` : "";
  image.style.height = tiny ? `${times * image.naturalHeight}px` : "";
}
async function showPicture(issue) {
  const image = $("picture"), none = $("no-picture");
  const found = await picture(issue.number, "large");
  if (view.at !== issue.number) return;
  none.hidden = !found.error;
  none.textContent = found.error ? `No picture: ${found.error}` : "";
  image.hidden = !!found.error;
  image.alt = found.error ? "" : `Example ${issue.id}`;
  if (found.url) {
    image.src = found.url;
    await image.decode().catch(() => {});
    if (view.at === issue.number) fit();
  }
}

// Examples of a label that are surely right, to compare with.
function showExamples(side, label) {
  const shown = $(`${side}-examples`), numbers = overview.no_pictures ? [] : view.references[side];
  const of = `Surely ${titled(label)}`;
  shown.hidden = !numbers.length;
  shown.setAttribute("aria-label", of);
  shown.replaceChildren(...numbers.map(at => {
    const button = document.createElement("button"), image = document.createElement("img");
    button.title = `${of}: click to enlarge`;
    button.setAttribute("aria-label", of);
    image.alt = "";
    button.append(image);
    button.onclick = () => zoom(at, of);
    picture(at, "small").then(found => {
      if (!found.url) return button.remove();
      image.onload = () => image.classList.toggle("tiny", isTiny(image));
      image.src = found.url;
    });
    return button;
  }));
}
const isTiny = image => Math.max(image.naturalWidth, image.naturalHeight) <= 64;
async function zoom(issue, alt) {
  const found = await picture(issue, "large");
  if (!found.url) return;
  const image = $("zoomed");
  image.alt = alt;
  image.onload = () => image.classList.toggle("tiny", isTiny(image));
  image.src = found.url;
  $("zoom").showModal();
}
const enlarge = () => { const issue = current(); if (issue && !$("picture").hidden) zoom(issue.number, `Example ${issue.id}`); };

function show(next) {
  view = next;
  filter = view.filter;
  $("pair").value = filter.pair === null ? "" : String(filter.pair);
  $("scope").value = filter.scope;
  // A sample of one pair would say nothing about all labels.
  $("pair").disabled = filter.scope === "sample";
  complain(view.trouble);
  closeSearch();
  showProgress();
  showPairButton();
  const issue = current();
  $("main").hidden = !issue;
  $("done").hidden = !!issue;
  for (const id of ["undo", "done-undo"]) $(id).disabled = !view.undoes;
  const undone = view.undoes > 1 ? `Undo all ${number.format(view.undoes)}` : "Undo";
  document.querySelectorAll(".undo-words").forEach(words => { words.textContent = undone; });
  if (issue) showIssue(issue); else showDone();
  showStrip();
  forget();
}
function showProgress() {
  const p = view.progress;
  $("bar").style.width = p.suspects ? `${100 * p.suspects_decided / p.suspects}%` : "100%";
  $("progress").setAttribute("aria-valuemax", p.suspects);
  $("progress").setAttribute("aria-valuenow", p.suspects_decided);
  const c = view.count, whole = x => number.format(Math.round(x));
  const parts = [`${number.format(p.suspects_decided)} of ${number.format(p.suspects)} suspects decided`];
  if (p.decided) parts.push(`${number.format(p.corrected)} corrected, ${number.format(p.kept)} kept, ${number.format(p.ambiguous)} ambiguous`);
  // Once there are enough of them, decided labels say more than the model.
  parts.push(c ? `about ${whole(c.count)} of ${number.format(overview.labels)} labels are wrong, between ${whole(c.low)} and ${whole(c.high)}, by ${number.format(c.sampled)} labels of a random sample`
    : overview.estimate.replace(/\.$/, ""));
  $("counts").textContent = parts.join(" · ");
  showSample(whole);
}
// What the sample tells so far, and how much more would tell more.
function showSample(whole) {
  const c = view.count;
  $("sample").hidden = filter.scope !== "sample";
  $("sample").textContent = !c ? `Labels in random order: ${view.sampled} of the ${view.sample_needed} that a count needs are decided.`
    : `By ${number.format(c.sampled)} labels in random order: ${whole(c.low)} to ${whole(c.high)} are wrong.`
      + (c.to_halve ? ` About ${number.format(c.to_halve)} more would halve the interval.` : "");
}
function showPairButton() {
  const left = view.total - view.decided;
  $("accept-pair").hidden = filter.pair === null || !left;
  $("accept-pair").textContent = `Accept all ${number.format(left)} suggestions of this pair`;
}
function showIssue(issue) {
  const single = overview.single;
  $("place").textContent = `${number.format(view.position + 1)} of ${number.format(view.total)} · rank ${number.format(issue.number + 1)}`;
  $("question").textContent = single ? "Which label is right?" : `Is ${overview.classes[issue.given.class]} on or off?`;
  for (const side of ["given", "suggested"]) {
    $(side).textContent = answer(issue[side]);
    const p = issue[`${side}_probability`];
    $(`${side}-bar`).style.width = `${100 * Math.min(1, Math.max(0, p))}%`;
    $(`${side}-probability`).textContent = percent(p);
  }
  $("accept-name").textContent = answer(issue.suggested);
  $("keep-name").textContent = answer(issue.given);
  $("score").textContent = `The given label is wrong with ${percent(issue.score)}`;
  $("id").textContent = issue.id;
  for (const side of ["given", "suggested"]) showExamples(side, issue[side]);
  const d = issue.decision, label = $("decided");
  label.className = kind(d);
  label.textContent = d === null ? "" : d === "accept" ? `Decided: ${answer(issue.suggested)}` : d === "keep" ? `Decided: keep ${answer(issue.given)}`
    : d === "ambiguous" ? "Decided: ambiguous" : `Decided: ${overview.classes[d.class]}`;
  if (!overview.no_pictures) showPicture(issue);
}
function showDone() {
  const p = view.progress, look = view.total > 0;
  $("done-look").hidden = !look;
  if (!overview.suspects && filter.scope === "suspects") {
    $("done-title").textContent = "No suspects";
    $("done-text").textContent = "The audit finds no label that is probably wrong. To look at labels nevertheless, choose “all labels” above, or a random sample to see whether it is right.";
  } else {
    $("done-title").textContent = filter.pair === null ? "All decided" : "All of this pair decided";
    $("done-text").textContent = `${number.format(p.corrected)} corrected, ${number.format(p.kept)} kept, ${number.format(p.ambiguous)} ambiguous. `
      + (filter.pair === null ? "corrected.csv in the audit's folder has all labels; the program can be ended with Ctrl-C." : "Choose another pair above, or all of them.");
  }
}
function showStrip() {
  const marks = { changed: "→", kept: "✓", unclear: "?" };
  const items = view.issues.map(issue => {
    const item = document.createElement("li"), button = document.createElement("button");
    const state = kind(issue.decision);
    button.title = `${issue.id}: ${titled(issue.given)} → ${titled(issue.suggested)}`;
    button.setAttribute("aria-label", button.title + (state ? ", decided" : ""));
    button.dataset.issue = issue.number;
    if (issue.number === view.at) button.setAttribute("aria-current", "true");
    button.className = state ? `settled ${state}` : "";
    const word = document.createElement("span");
    word.className = "word";
    word.textContent = `${titled(issue.given)} → ${answer(issue.suggested)}`;
    button.append(word);
    if (!overview.no_pictures) picture(issue.number, "small").then(found => {
      if (!found.url) return;
      const image = document.createElement("img");
      image.alt = "";
      image.onload = () => image.classList.toggle("tiny", isTiny(image));
      image.src = found.url;
      word.replaceWith(image);
    });
    if (state) {
      const mark = document.createElement("span");
      mark.className = "mark";
      mark.textContent = marks[state];
      button.append(mark);
    }
    button.onclick = () => go(issue.number);
    item.append(button);
    return item;
  });
  $("strip").replaceChildren(...items);
  const strip = $("strip"), at = strip.querySelector("[aria-current]");
  if (at) strip.scrollLeft = at.offsetLeft - strip.offsetLeft - strip.clientWidth / 2 + at.clientWidth / 2;
  const index = view.issues.findIndex(issue => issue.number === view.at);
  if (!overview.no_pictures && index >= 0) for (const issue of view.issues.slice(index + 1, index + 4)) picture(issue.number, "large");
}

async function once(work) {
  if (busy) return;
  busy = true;
  document.body.setAttribute("aria-busy", "true");
  try { show(await work()); } catch (error) { complain(error.message); } finally {
    busy = false;
    document.body.removeAttribute("aria-busy");
  }
}
const query = at => {
  const values = new URLSearchParams({ scope: filter.scope });
  if (filter.pair !== null) values.set("pair", filter.pair);
  if (at !== undefined) values.set("at", at);
  return `/api/window?${values}`;
};
const go = at => once(() => ask(query(at)));
const undo = () => once(() => ask("/api/undo", { filter }));
const decide = decision => { if (view.at !== null) once(() => ask("/api/decide", { issue: view.at, decision, filter })); };
// One decision about all of them, saved and undone as one.
const acceptPair = () => once(() => ask("/api/accept-all", { filter }));
function step(by) {
  const index = view.issues.findIndex(issue => issue.number === view.at);
  const to = view.issues[index + by];
  if (to && index >= 0) go(to.number);
}

// Another class: type a part of its name.
let chosen = 0, found = [];
function openSearch() {
  if (!overview.single || view.at === null) return;
  $("search").hidden = false;
  $("other").setAttribute("aria-expanded", "true");
  $("query").value = "";
  match();
  $("query").focus({ preventScroll: true });
  // The list alone scrolls: the page would take the header with it.
  const below = $("search").getBoundingClientRect().bottom - innerHeight;
  if (below > 0) $("matches").style.maxHeight = `${Math.max(96, $("matches").clientHeight - below - 8)}px`;
}
function closeSearch() {
  if ($("search").hidden) return;
  const inside = $("search").contains(document.activeElement);
  $("search").hidden = true;
  $("other").setAttribute("aria-expanded", "false");
  if (inside) $("other").focus({ preventScroll: true });
}
function match() {
  const text = $("query").value.trim().toLowerCase(), { classes } = overview;
  const rank = name => name === text ? 0 : name.startsWith(text) ? 1 : name.includes(text) ? 2 : 3;
  const all = [];
  for (let at = 0; at < classes.length; at++) {
    const place = rank(classes[at].toLowerCase());
    if (place < 3) all.push([place, at]);
  }
  found = all.sort((a, b) => a[0] - b[0] || a[1] - b[1]).slice(0, MATCHES).map(([, at]) => at);
  chosen = 0;
  const items = found.map((at, position) => {
    const item = document.createElement("li");
    item.id = `match-${position}`;
    item.setAttribute("role", "option");
    item.textContent = classes[at];
    item.onclick = () => decide({ class: at });
    return item;
  });
  if (all.length > MATCHES || !items.length) {
    const more = document.createElement("li");
    more.className = "nothing";
    more.textContent = items.length ? `and ${number.format(all.length - MATCHES)} more: type on` : "No class of this name";
    items.push(more);
  }
  $("matches").replaceChildren(...items);
  select();
}
function select() {
  const items = $("matches").querySelectorAll("[role=option]");
  items.forEach((item, at) => item.setAttribute("aria-selected", String(at === chosen)));
  $("query").setAttribute("aria-activedescendant", items.length ? `match-${chosen}` : "");
  items[chosen]?.scrollIntoView({ block: "nearest" });
}
$("query").addEventListener("input", match);
$("query").addEventListener("keydown", event => {
  if (event.key === "ArrowDown") chosen = Math.min(chosen + 1, found.length - 1);
  else if (event.key === "ArrowUp") chosen = Math.max(chosen - 1, 0);
  else if (event.key === "Enter" && found.length) decide({ class: found[chosen] });
  else if (event.key === "Escape") closeSearch();
  else return;
  event.preventDefault();
  if (!$("search").hidden) select();
});

const keys = {
  a: () => decide("accept"), k: () => decide("keep"), m: () => decide("ambiguous"), c: openSearch, "/": openSearch,
  z: enlarge, u: undo, ArrowLeft: () => step(-1), ArrowRight: () => step(1), Home: () => go(), "?": () => $("help").showModal(),
};
document.addEventListener("keydown", event => {
  if ($("zoom").open && event.key === "z") return $("zoom").close();
  if (!view || $("help").open || $("zoom").open || event.altKey || event.metaKey && event.key !== "z") return;
  const at = document.activeElement;
  const writing = at?.matches("input[type=text]"), typing = writing || at?.matches("select");
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !writing) {
    event.preventDefault();
    return undo();
  }
  if (typing || event.ctrlKey) return;
  const action = keys[event.key] || keys[event.key.toLowerCase()];
  if (!action) return;
  event.preventDefault();
  // A key that is held must not decide about labels that nobody has seen.
  if (event.repeat && !event.key.startsWith("Arrow")) return;
  action();
});

$("accept").onclick = () => decide("accept");
$("keep").onclick = () => decide("keep");
$("ambiguous").onclick = () => decide("ambiguous");
$("other").onclick = () => $("search").hidden ? openSearch() : closeSearch();
$("accept-pair").onclick = acceptPair;
$("previous").onclick = () => step(-1);
$("next").onclick = () => step(1);
for (const id of ["undo", "done-undo"]) $(id).onclick = undo;
$("done-look").onclick = () => once(async () => {
  const first = await ask(query());
  return first.issues.length ? ask(query(first.issues[0].number)) : first;
});
$("picture").onclick = enlarge;
$("zoom").onclick = () => $("zoom").close();
$("help-button").onclick = () => $("help").showModal();
$("pair").onchange = event => {
  filter = { ...filter, pair: event.target.value === "" ? null : Number(event.target.value) };
  event.target.blur();
  go();
};
$("scope").onchange = event => {
  const scope = event.target.value;
  filter = { scope, pair: scope === "sample" ? null : filter.pair };
  event.target.blur();
  go();
};
addEventListener("resize", () => { if ($("picture").naturalWidth) fit(); });

function begin() {
  $("audit").textContent = overview.name;
  document.title = `Review of ${overview.name} – Aleator`;
  const choices = [new Option(`all pairs (${number.format(overview.suspects)})`, "")];
  overview.pairs.forEach((pair, at) => {
    const to = answer(pair.suggested);
    choices.push(new Option(`${titled(pair.given)} → ${to} (${number.format(pair.count)})`, String(at)));
  });
  $("pair").replaceChildren(...choices);
  overview.notes.forEach(note => say(note));
  if (overview.pairs_left_out) say(`${number.format(overview.pairs_left_out)} rarer pairs are not in the menu.`);
  if (overview.no_pictures) {
    document.querySelectorAll(".pictured").forEach(row => { row.hidden = true; });
    $("main").classList.add("plain");
    $("picture").hidden = true;
    $("no-picture").hidden = false;
    $("no-picture").textContent = `No pictures: ${overview.no_pictures}`;
  }
  if (!overview.single) {
    $("other").hidden = true;
    document.querySelectorAll(".single").forEach(row => { row.hidden = true; });
  }
}
once(async () => {
  overview = await ask("/api/overview");
  begin();
  return ask(query());
});
})();
