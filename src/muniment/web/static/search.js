// Search in a site that was opened from disk: the texts come as scripts, one after the other.
"use strict";
const form = document.querySelector("[data-search]");
const said = document.getElementById("said");
const hits = document.getElementById("hits");
const more = document.getElementById("more");
const SHOWN = 100;
let about = null, words = [], next = 0, run = 0, found = 0, waiting = [];

const load = (name) => new Promise((done, failed) => {
  const script = document.createElement("script");
  script.src = `search/${name}.js`;
  script.onload = () => { script.remove(); done(); };
  script.onerror = failed;
  document.head.append(script);
});

const page = (table, row) => {
  const number = Math.floor((row - 1) / about.size) + 1;
  return `${about.tables[table].file}${number > 1 ? `.${number}` : ""}.html#row${row}`;
};

const show = ([table, row, text]) => {
  const at = Math.max(0, text.toLowerCase().indexOf(words[0]) - 60);
  const item = document.createElement("li"), link = document.createElement("a");
  const piece = document.createElement("p");
  link.href = page(table, row);
  link.textContent = `${about.tables[table].name}, ${form.dataset.row} ${row}`;
  piece.textContent = (at ? "…" : "") + text.slice(at, at + 240) + (text.length > at + 240 ? "…" : "");
  item.append(link, piece);
  hits.append(item);
};

const flush = () => { while (waiting.length && found < SHOWN) { show(waiting.shift()); found += 1; } };

const go = async () => {
  const own = run += 1;
  flush();
  while (found < SHOWN && next < about.pieces && own === run) {
    said.textContent = form.dataset.searching.replace("%", Math.floor(100 * next / about.pieces));
    await load(next);
    next += 1;
    flush();
  }
  if (own !== run) return;
  const over = next >= about.pieces && !waiting.length;
  more.hidden = over;
  said.textContent = hits.children.length ? "" : form.dataset.nothing;
};

window.muniment = {
  start: (facts) => { about = facts; },
  take: (rows) => {
    for (const row of rows) {
      const text = row[2].toLowerCase();
      if (words.every((word) => text.includes(word))) waiting.push(row);
    }
  },
};

const begin = async () => {
  words = form.elements.q.value.toLowerCase().split(/\s+/).filter(Boolean);
  hits.replaceChildren();
  next = found = 0;
  waiting = [];
  if (!about) await load("list");
  if (words.length) await go();
};
form.addEventListener("submit", (event) => { event.preventDefault(); begin(); });
more.addEventListener("click", () => { found = 0; go(); });
const asked = new URLSearchParams(location.search).get("q");
if (asked) { form.elements.q.value = asked; begin(); }
