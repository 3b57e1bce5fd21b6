// Draws the history of the share over its picture: the table has the numbers, the pointer reads them.
"use strict";

// A day, or an hour of it, UTC
function time(at) {
  const text = new Date(1000 * at).toISOString();
  return text.endsWith("T00:00:00.000Z") ? text.slice(0, 10) : text.slice(11, 16);
}

function draw() {
  const picture = document.querySelector("svg.history");
  const rows = [...document.querySelectorAll("tr[data-at]")].reverse();
  if (picture === null || rows.length < 2) return;
  const column = (name) => rows.map((row) => (row.dataset[name] === "" ? null : Number(row.dataset[name])));
  const grid = { stroke: getComputedStyle(document.querySelector("header nav")).borderBottomColor, width: 0.5 };
  const percent = (_, value) => (value === null ? "–" : `${(100 * value).toFixed(1)}%`);
  const probe = getComputedStyle(picture.querySelector(".share")).stroke;
  const axis = { stroke: getComputedStyle(document.body).color, grid, ticks: { show: false } };
  const line = { stroke: probe, points: { show: rows.length < 40 }, value: percent };
  const place = document.createElement("div");
  picture.replaceWith(place);
  const size = () => ({ width: place.clientWidth, height: 260 });
  const plot = new uPlot({
    ...size(),
    series: [
      { value: (_, at) => (at === null ? "–" : new Date(1000 * at).toISOString().slice(0, 16).replace("T", " ")) },
      { ...line, label: "share", width: 2 },
      { ...line, label: "low", width: 0, points: { show: false } },
      { ...line, label: "high", width: 0, points: { show: false } },
    ],
    bands: [{ series: [3, 2], fill: probe.replace("rgb(", "rgba(").replace(")", ", .2)") }],
    axes: [{ ...axis, values: (_, ticks) => ticks.map(time) }, { ...axis, values: (_, ticks) => ticks.map((tick) => `${Math.round(1000 * tick) / 10}%`) }],
    scales: { y: { range: (_, low, high) => [Math.max(0, low - 0.02), Math.min(1, high + 0.02)] } },
    tzDate: (at) => uPlot.tzDate(new Date(1000 * at), "UTC"),
  }, [column("at").map((at) => at / 1000), column("share"), column("low"), column("high")], place);
  new ResizeObserver((_, observer) => {
    if (place.isConnected) return plot.setSize(size());
    observer.disconnect();  // the page was replaced
    plot.destroy();
  }).observe(place);
}

draw();
document.addEventListener("replaced", draw);
