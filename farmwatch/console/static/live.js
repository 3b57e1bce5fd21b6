// Keeps the page as the server has it: when the log moved on, the page is fetched again and its main part replaced.
// A page whose form is being filled in stays. A hidden page does not listen: a browser opens six connections to a host.
// Single keys press the buttons and links that name them.
"use strict";

const state = document.getElementById("live");
let source = null;
let version = document.body.dataset.version ?? ""; // that the page shows
let fetching = false;
let shown = document.querySelector("main").innerHTML;

function listen() {
  source?.close();
  if (document.hidden) return;
  source = new EventSource(`/events?since=${version}`);
  source.onopen = () => { state.textContent = "live"; };
  source.onerror = () => { state.textContent = "not live: the console does not answer"; };
  source.onmessage = (event) => renew(event.data);
}

async function renew(now) {
  if (fetching || isFilledIn() || getSelection().type === "Range") return;
  fetching = true;
  try {
    const answer = await fetch(location.href);
    const next = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
    if (next !== null && next.innerHTML !== shown && !isFilledIn()) replaceMain(next);
    version = now;
  } catch { /* the next event tries again */ } finally {
    fetching = false;
  }
}

function isFilledIn() {
  const fields = [...document.querySelectorAll("main input, main textarea")];
  return document.activeElement.closest("main form") !== null || fields.some((field) => field.value !== field.defaultValue);
}

function replaceMain(next) {
  const main = document.querySelector("main");
  const open = [...main.querySelectorAll("details")].map((details) => details.open);
  const focused = document.activeElement, href = focused.getAttribute("href");
  const alike = () => [...main.querySelectorAll("a, button, summary, [tabindex]")].filter((stop) => stop.getAttribute("href") === href);
  const place = alike().indexOf(focused); // -1 outside the main part
  shown = next.innerHTML;
  main.replaceChildren(...next.childNodes);
  main.querySelectorAll("details").forEach((details, place) => { details.open = open[place] ?? details.open; });
  alike()[place]?.focus({ preventScroll: true });
  document.dispatchEvent(new Event("replaced"));
}

document.addEventListener("keydown", (event) => {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  document.querySelector(`[data-key="${CSS.escape(event.key)}"]`)?.click();
});

document.addEventListener("visibilitychange", listen);
listen();
