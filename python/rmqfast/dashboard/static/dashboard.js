"use strict";
// Keys and charts. Pages can be read without this script.
(() => {
  const dialog = document.getElementById("keys");
  const help = document.getElementById("help");
  help.hidden = false;
  help.addEventListener("click", () => dialog.showModal());

  const isTyping = (element) => element.matches("input:not([type=checkbox]), select, textarea");
  const rowLinks = () => [...document.querySelectorAll("#live tbody tr")].map((row) => row.querySelector("a")).filter(Boolean);

  function moveBy(step) {
    const links = rowLinks();
    const row = document.activeElement.closest("tr");
    const place = links.findIndex((link) => link.closest("tr") === row);
    const next = links[Math.min(Math.max(place + step, 0), links.length - 1)];
    if (next) next.focus();
  }

  const actions = {
    "?": () => dialog.showModal(),
    "/": () => document.querySelector("input[type=search], form.fields input")?.focus(),
    j: () => moveBy(1),
    k: () => moveBy(-1),
    n: () => document.querySelector("a[rel=next]")?.click(),
    p: () => document.querySelector("a[rel=prev]")?.click(),
  };
  let isGoing = false;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || dialog.open) return;
    const target = isGoing ? document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`) : null;
    isGoing = !isGoing && event.key === "g";
    const action = target ? () => target.click() : isGoing ? () => {} : actions[event.key];
    if (action) {
      event.preventDefault();
      action();
    }
  });

  const colours = ["#2a7ae2", "#d9822b"];
  const plots = new WeakMap();

  const asked = new WeakSet();

  async function valuesOf(figure) {
    if (asked.has(figure)) return null; // the answer before is still under way
    asked.add(figure);
    try {
      const answer = await fetch(figure.dataset.path);
      return answer.ok ? await answer.json() : null;
    } finally {
      asked.delete(figure);
    }
  }

  async function draw(figure) {
    const values = await valuesOf(figure);
    if (!values || values.time.length < 2) return;
    const labels = new Map(figure.dataset.labels.split(";").filter(Boolean).map((each) => each.split("=")));
    const data = [values.time, ...[...labels.keys()].map((key) => values[key])];
    if (plots.has(figure)) {
      plots.get(figure).setData(data);
      return;
    }
    const ink = getComputedStyle(document.body).color;
    const axis = { stroke: ink, grid: { stroke: "#8884", width: 1 }, ticks: { stroke: "#8884" } };
    const series = [...labels.values()].map((label, index) => ({ label, stroke: colours[index], width: 2, spanGaps: false }));
    const options = { width: figure.clientWidth, height: 160, series: [{}, ...series], axes: [axis, { ...axis, size: 70 }], cursor: { y: false } };
    const plot = new uPlot(options, data, figure);
    plots.set(figure, plot);
    new ResizeObserver(() => plot.setSize({ width: figure.clientWidth, height: 160 })).observe(figure);
  }

  const drawAll = () => document.querySelectorAll("figure.chart").forEach((figure) => draw(figure).catch((error) => console.warn(`chart ${figure.dataset.path}:`, error)));
  drawAll();
  setInterval(drawAll, 5000);
})();
