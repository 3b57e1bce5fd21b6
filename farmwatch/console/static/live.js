// Keeps the page as the server has it: when the log moved on, the page is fetched again and its main part replaced.
// A page whose form is being filled in stays. Single keys press the buttons and links that name them.
"use strict";

const source = new EventSource(`/events?since=${document.body.dataset.version ?? ""}`);
const state = document.getElementById("live");
let fetching = false;
let shown = document.querySelector("main").innerHTML;

source.onopen = () => { state.textContent = "live"; };
source.onerror = () => { state.textContent = "not live: the console does not answer"; };
source.onmessage = async () => {
  const isFilledIn = document.activeElement.closest("main form") !== null;
  if (fetching || document.hidden || isFilledIn || getSelection().type === "Range") return;
  fetching = true;
  try {
    const answer = await fetch(location.href);
    const next = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
    if (next !== null && next.innerHTML !== shown) replaceMain(next);
  } catch { /* the next event tries again */ } finally {
    fetching = false;
  }
};

function replaceMain(next) {
  const main = document.querySelector("main");
  const open = [...main.querySelectorAll("details")].map((details) => details.open);
  const focused = document.activeElement.closest("main a")?.getAttribute("href");
  shown = next.innerHTML;
  main.replaceChildren(...next.childNodes);
  main.querySelectorAll("details").forEach((details, place) => { details.open = open[place] ?? details.open; });
  if (focused) main.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  document.dispatchEvent(new Event("replaced"));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  document.querySelector(`[data-key="${CSS.escape(event.key)}"]`)?.click();
});
