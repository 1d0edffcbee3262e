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

// While an index is being built: show how far it is, and reload when it is ready.
const notice = document.querySelector("[data-progress]");
if (notice && notice.querySelector("progress")) {
  const look = async () => {
    try {
      const facts = await (await fetch(notice.dataset.progress)).json();
      const bar = notice.querySelector("progress");
      bar.value = facts.percent;
      if (facts.state === "ready" || facts.state === "failed") {
        location.reload();
        return;
      }
    } catch (error) { /* the server may be gone; the page stays */ }
    setTimeout(look, 700);
  };
  setTimeout(look, 400);
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

// The diagram: zoom without a new page, move by dragging.
const drawing = document.querySelector(".erd");
if (drawing) {
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
