// Small comforts; every page works without them.
"use strict";
document.documentElement.classList.add("js");

// Copy buttons.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.copy).textContent;
    await navigator.clipboard.writeText(text);
    button.textContent = button.dataset.done;
  });
}

// A page is loaded again by itself only while nobody has written or ticked anything in it.
let touched = false;
document.addEventListener("input", () => { touched = true; }, true);
const refresh = (element) => {
  if (touched) element.hidden = true;
  else location.reload();
};

// While an index is being built: show how far it is, and reload when it is ready.
const notice = document.querySelector("[data-progress]");
if (notice && notice.querySelector("progress")) {
  const look = async () => {
    try {
      const facts = await (await fetch(notice.dataset.progress)).json();
      const bar = notice.querySelector("progress");
      bar.value = facts.percent;
      if (facts.state === "ready" || facts.state === "failed") {
        refresh(notice);
        return;
      }
    } catch (error) { /* the server may be gone; the page stays */ }
    setTimeout(look, 700);
  };
  setTimeout(look, 400);
}

// While an archive is being validated: show how far it is, and the verdict when it is there.
const judged = document.querySelector("[data-verdict]");
if (judged) {
  const look = async () => {
    try {
      const facts = await (await fetch(judged.dataset.verdict)).json();
      judged.querySelector("progress").value = facts.verdict.percent || 0;
      if (facts.verdict.state === "done" || facts.verdict.state === "failed") {
        refresh(judged);
        return;
      }
    } catch (error) { /* the server may be gone; the page stays */ }
    setTimeout(look, 1500);
  };
  setTimeout(look, 1500);
}

// Choosing rows and cells: the cells that will be cited are marked, and their name is shown.
for (const form of document.querySelectorAll("form.choosing")) {
  const rows = [...form.querySelectorAll("input[name=row]")];
  const columns = [...form.querySelectorAll("input[name=col]")];
  const said = form.querySelector("[data-chosen]");
  let last = null;
  const runs = (numbers) => numbers.reduce((found, n) => {
    if (found.length && found[found.length - 1][1] === n - 1) found[found.length - 1][1] = n;
    else found.push([n, n]);
    return found;
  }, []);
  const name = (row, column) => {
    const first = [form.dataset.place], end = [];
    for (const [letter, run] of [["c", column], ["r", row]]) {
      if (run) { first.push(letter + run[0]); end.push(letter + run[1]); }
    }
    const scheme = row ? (column ? "cell" : "row") : column ? "col" : "table";
    const whole = [row, column].every((run) => !run || run[0] === run[1]);
    return `${scheme}=(${first})${whole ? "" : `,(${end})`}`;
  };
  const show = () => {
    const chosen = columns.map((box, k) => [box.checked, k]).filter(([on]) => on).map(([, k]) => k);
    for (const box of rows) {
      const line = box.closest("tr");
      if (!line) continue;
      line.querySelectorAll("td").forEach((cell, k) => cell.classList.toggle(
        "chosen", box.checked ? !chosen.length || chosen.includes(k) : false));
    }
    if (!said) return;
    const ticked = rows.filter((box) => box.checked).map((box) => +box.value).sort((a, b) => a - b);
    const numbers = chosen.map((k) => +columns[k].dataset.position).sort((a, b) => a - b);
    if (!ticked.length && !numbers.length) { said.textContent = said.dataset.chosen; return; }
    const names = [];
    for (const row of ticked.length ? runs(ticked) : [null]) {
      for (const column of numbers.length ? runs(numbers) : [null]) names.push(name(row, column));
    }
    said.textContent = names.slice(0, 3).map((each) => `${form.dataset.citedAs}#${each}`).join("  ")
      + (names.length > 3 ? ` … (${names.length})` : "");
  };
  form.addEventListener("click", (event) => {
    const at = rows.indexOf(event.target);
    if (at < 0) return;
    if (event.shiftKey && last !== null) {
      const [from, to] = [Math.min(last, at), Math.max(last, at)];
      for (let k = from; k <= to; k += 1) rows[k].checked = event.target.checked;
      show();
    }
    last = at;
  });
  form.addEventListener("change", show);
  show();
}

// Ctrl-Enter runs a query.
const query = document.getElementById("sql");
if (query) {
  query.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      query.form.submit();
    }
  });
}

// Empty filters need not stand in the address; a chosen column makes room for another filter.
for (const form of document.querySelectorAll("form.controls")) {
  form.addEventListener("submit", () => {
    for (const line of form.querySelectorAll("[data-new-filter]")) {
      if (!line.querySelector("select").value) {
        for (const field of line.querySelectorAll("select, input")) field.disabled = true;
      }
    }
    for (const field of form.querySelectorAll("input[name=q]")) field.disabled = !field.value;
  });
  form.addEventListener("change", (event) => {
    const line = event.target.closest("[data-new-filter]");
    if (!line || event.target.name !== "c" || !event.target.value) return;
    const next = line.cloneNode(true);
    for (const field of next.querySelectorAll("input")) field.value = "";
    next.querySelector("select").value = "";
    line.removeAttribute("data-new-filter");
    line.after(next);
    line.querySelector("input").focus();
  });
}

// The diagram: zoom without a new page, move by dragging; a table shows its own lines.
const drawing = document.querySelector(".erd");
if (drawing) {
  const lines = new Map();
  for (const line of drawing.querySelectorAll("[data-ends]")) {
    for (const end of line.dataset.ends.split(" ")) lines.set(end, [...(lines.get(end) || []), line]);
  }
  const look = (box, on) => {
    const own = lines.get(box.dataset.box) || [];
    drawing.classList.toggle("looking", on && own.length > 0);
    for (const line of own) line.classList.toggle("near", on);
  };
  for (const box of drawing.querySelectorAll("[data-box]")) {
    for (const event of ["pointerenter", "focusin"]) box.addEventListener(event, () => look(box, true));
    for (const event of ["pointerleave", "focusout"]) box.addEventListener(event, () => look(box, false));
  }
  const paper = drawing.parentElement;
  const zoom = document.querySelector("[data-zoom]");
  const resize = (factor) => {
    drawing.setAttribute("width", Math.round(drawing.dataset.width * factor));
    drawing.setAttribute("height", Math.round(drawing.dataset.height * factor));
  };
  zoom.addEventListener("change", () => resize(zoom.value / 100));
  let held = null;
  paper.addEventListener("pointerdown", (event) => {
    if (event.target.closest("a")) return;
    held = [event.clientX + paper.scrollLeft, event.clientY + paper.scrollTop];
  });
  window.addEventListener("pointermove", (event) => {
    if (!held) return;
    paper.scrollLeft = held[0] - event.clientX;
    paper.scrollTop = held[1] - event.clientY;
  });
  window.addEventListener("pointerup", () => { held = null; });
}
