"use strict";
// Rows travel by column, each word once (packing.py).
function unpacked(packed) {
  const columns = Object.entries(packed.columns).map(([name, held]) => [
    name,
    Array.isArray(held) ? held : held.at.map((at) => (at === null ? null : held.words[at])),
  ]);
  return Array.from({ length: packed.rows }, (_, row) =>
    Object.fromEntries(columns.map(([name, values]) => [name, values[row]])),
  );
}
// A chart may start as a picture; where scripts run it becomes interactive.
const { charts, points } = JSON.parse(document.getElementById("charts").textContent);
const actions = { export: true, source: false, compiled: false, editor: false };
function drawChart(holder) {
  const spec = charts[holder.dataset.chart];
  if (spec.datasets) spec.datasets.points = unpacked(points[spec.datasets.points]);
  const stage = document.createElement("div");
  const options = { renderer: "svg", ast: true, logLevel: 1, actions };
  return vegaEmbed(stage, spec, options)
    .then(() => holder.replaceChildren(stage))
    .catch((error) => {
      console.error(holder.dataset.chart, error);
      if (holder.querySelector("img")) return;
      holder.textContent = `This figure cannot be drawn (${error}); its numbers are in the tables.`;
    });
}
// One at a time, in the page's order, so that the page can be read and scrolled meanwhile.
async function drawCharts() {
  for (const holder of document.querySelectorAll("[data-chart]")) {
    await drawChart(holder);
    await new Promise((resume) => setTimeout(resume));
  }
}
setTimeout(drawCharts);
// A link to a section without data opens it.
function openTarget() {
  const section = document.getElementById(location.hash.slice(1));
  const fold = section && section.querySelector(":scope > details");
  if (fold) fold.open = true;
}
addEventListener("hashchange", openTarget);
openTarget();
const links = new Map(
  [...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]),
);
const watcher = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      links.get(entry.target.id).classList.toggle("here", entry.isIntersecting);
    }
  },
  { rootMargin: "-10% 0px -80% 0px" },
);
for (const section of document.querySelectorAll("main section")) watcher.observe(section);
