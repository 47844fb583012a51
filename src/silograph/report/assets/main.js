/* What happens when a reader turns a knob, and the order in which the page comes up: words and graphs first, then the rest. */

const later = (work, milliseconds = 120) => {
  let waiting = 0;
  return () => { clearTimeout(waiting); waiting = setTimeout(work, milliseconds); };
};
const drawDegreesLater = later(() => { if (charted) drawDegrees(); }), drawThumbsLater = later(drawThumbs, 60);
const drawRestLater = later(() => { if (charted) { drawMatrices(); drawTable(); } });
const allViews = () => [...views, ...brainViews];

function setThreshold(threshold) {
  state.threshold = threshold;
  const text = threshold > 0 ? short(threshold) : "0 (all)";
  byId("threshold-text").textContent = text;
  byId("threshold").setAttribute("aria-valuetext", `weight ${text}`);
  allViews().forEach((view) => view.setThreshold(threshold));
  refreshEdges();
}

/* After other edges are shown. */
function refreshEdges() {
  if (state.node !== null) allViews().forEach((view) => view.highlight(state.node));
  refreshCounts();
  listNeighbours();
  drawThumbsLater();
  drawDegreesLater();
}

/* The bar in per cent of half-samples, and whether edges below it are hidden. */
function setBar(bar, hide = state.hide) {
  Object.assign(state, { bar, hide });
  allViews().forEach((view) => view.setStable());
  sayStability();
  refreshEdges();
  drawRestLater();
}

function choose(node) {
  state.node = node;
  if (node === null) byId("find").value = "";
  else byId("find").value = run.nodes[node];
  allViews().forEach((view) => view.highlight(node));
  byId("status").textContent = node === null ? "" : `${run.nodes[node]}: its neighbours are highlighted. Escape shows all again.`;
  listNeighbours();
}

/* The node with this name, else the first whose name begins so, else the first that has it inside. */
function findNode(query) {
  const wanted = query.trim().toLowerCase(), names = run.nodes.map((name) => name.toLowerCase());
  if (!wanted) return null;
  const exact = run.nodes.indexOf(query.trim());
  if (exact >= 0) return exact;
  for (const test of [(name) => name === wanted, (name) => name.startsWith(wanted), (name) => name.includes(wanted)]) {
    const found = names.findIndex(test);
    if (found >= 0) return found;
  }
  return -1;
}

function search(final) {
  const query = byId("find").value, found = findNode(query);
  if (found === null) { choose(null); return; }
  if (found < 0) {
    allViews().forEach((view) => view.highlight(null));
    state.node = null;
    listNeighbours();
    byId("status").textContent = `No node's name contains “${query}”.`;
  } else if (final || run.nodes[found] === query) choose(found);
  else {
    const typed = byId("find").value;
    choose(found);
    byId("find").value = typed;
  }
}

function showGraph(graph) {
  state.graph = graph;
  byId("silo").value = run.graphs.indexOf(graph);
  byId("silo-name").textContent = graph.name;
  for (const view of [views[1], ...brainViews]) view.draw(graph);
  document.querySelectorAll(".thumb").forEach((thumb) => thumb.setAttribute("aria-pressed", String(thumb.graph === graph)));
  setThreshold(state.threshold);
  sayStability();
  [views[1], ...brainViews].forEach((view) => view.placeNames());
  table.graph = graph;
  byId("table-graph").value = run.graphs.indexOf(graph);
  table.rows = PAGE_ROWS;
  sayBrain();
  if (charted) { drawMatrices(); drawTable(); }
}

function sayBrain() {
  const where = run.spatial ? ` The file ${run.spatial}, written beside this page, turns the consensus in space.` : "";
  byId("brain-says").textContent = `${state.graph.name}, from three sides, with the ${halves ? "sliders" : "threshold"} set above. Coordinates are in MNI space.${where}`;
}

/* Graphs to choose from, those of a site together. */
function listGraphs(choice, graphs) {
  const siteOf = new Map(run.silos.map((silo) => [silo.name, silo.site])), groups = new Map();
  for (const graph of graphs) {
    const option = element("option", graph.name, { value: run.graphs.indexOf(graph) }), site = siteOf.get(graph.name);
    if (!site) { choice.append(option); continue; }
    if (!groups.has(site)) { groups.set(site, element("optgroup", null, { label: site })); choice.append(groups.get(site)); }
    groups.get(site).append(option);
  }
}

function buildControls() {
  byId("main-name").textContent = main.main && hasSilos ? "consensus" : "graph";
  listGraphs(byId("silo"), run.graphs.slice(1));
  byId("node-names").append(...run.nodes.map((name) => element("option", null, { value: name })));
  byId("threshold").value = stepOf(state.threshold);
  byId("silo").addEventListener("change", () => showGraph(run.graphs[byId("silo").value]));
  byId("threshold").addEventListener("input", () => setThreshold(thresholdAt(Number(byId("threshold").value))));
  buildBar();
  byId("find").addEventListener("input", () => search(false));
  byId("find").addEventListener("keydown", (event) => {
    if (event.key === "Enter") search(true);
    if (event.key === "Escape") choose(null);
  });
  byId("zoom-in").addEventListener("click", () => zoomBy(1.3));
  byId("zoom-out").addEventListener("click", () => zoomBy(1 / 1.3));
  byId("reset").addEventListener("click", () => { choose(null); allViews().forEach((view) => view.fit()); });
  byId("matrix-kind").addEventListener("change", drawMatrices);
  window.addEventListener("resize", later(() => allViews().forEach((view) => view.fit()), 150));
}

function buildBar() {
  byId("stability").hidden = !halves;
  if (!halves) return;
  byId("bar").value = state.bar;
  byId("halves-says").textContent = `Each of ${halves.halves} half-samples has ${halves.of}${halves.of.includes("silos") && !halves.of.includes("rows") ? "; those of a silo’s own graph, half of its rows" : ""}. Edges that few of them found may be chance.`;
  byId("bar").addEventListener("input", () => setBar(Number(byId("bar").value)));
  byId("hide").addEventListener("change", () => setBar(state.bar, byId("hide").checked));
}

function fillLegend() {
  const legend = byId("legend");
  const entries = hasSilos ? [["red", "an edge of the consensus"], ["blue", "an edge of this silo only, not of the consensus"]] : [["ink", "an edge"]];
  for (const [kind, text] of entries) {
    const entry = element("span");
    entry.append(element("i", null, { class: `key ${kind}` }), text);
    legend.append(entry);
  }
  if (others.some((graph) => graph.lacks.size)) {
    const entry = element("span");
    entry.append(element("i", null, { class: "key ring" }), "a node that this silo lacks");
    legend.append(entry);
  }
  if (halves) {
    const [firm, faint] = [["firm", "dark: found in at least"], ["faint", "faint: found in less than"]].map(([kind, before]) => {
      const entry = element("span");
      entry.append(element("i", null, { class: `key ${kind}` }), element("span", null, { class: "bar-says", "data-before": before }));
      return entry;
    });
    legend.append(firm, faint);
  }
  const few = nodeCount > run.fluid ? ` With ${nodeCount.toLocaleString("en")} nodes, drawings show only the ${run.drawn.toLocaleString("en")} strongest edges and the nodes they join; the matrices show all.` : "";
  legend.append(element("span", "Thicker is stronger."));
  const start = run.threshold > 0 ? ` At first, edges from weight ${short(run.threshold)} on are shown: about ${short(run.degree || 5)} neighbours for each node of a silo${run.degree ? ", as was asked for" : ""}.` : "";
  byId("start-says").textContent = `${start}${few}`.trim();
}

let charted = false;
function drawCharts() {
  byId("newcomer-section").hidden = !run.newcomer;
  byId("coupling-section").hidden = !run.coupling;
  byId("coupling-says").textContent = run.coupling ? run.coupling.says : "";
  const work = [buildTable, drawContributions, drawSimilarity, drawDegrees, drawConvergence, drawMatrices];
  if (!hasSilos) work.splice(1, 2);
  if (run.coupling) work.splice(-1, 0, drawCoupling);
  if (run.newcomer) work.splice(1, 0, drawNewcomer);
  charted = true;
  // One after the other, so that the page answers in between
  const next = () => {
    const task = work.shift();
    if (!task) { document.documentElement.dataset.ready = "yes"; return; }
    task();
    setTimeout(next, 0);
  };
  next();
}

function sayMatrices() {
  const groups = new Set(run.community).size;
  const which = !halves ? "All weights are shown, whatever the slider says."
    : state.hide ? `Only edges found ${barText()} are shown, of any weight.` : `Edges of any weight are shown; grey are those found in less than ${state.bar}% of half-samples.`;
  byId("matrix-says").textContent = `Rows and columns are nodes, ordered so that those of a group stand together${groups > 1 ? ` (${counted(groups, "group")}${perCell === 1 ? ", framed" : ""})` : ""}. `
    + (perCell > 1 ? `Each cell stands for ${perCell} × ${perCell} nodes and shows their largest weight. ` : "") + which;
}

fillWords();
fillLegend();
buildControls();
buildViews();
buildBrain();
buildThumbs();
if (views[1]) showGraph(state.graph); else { brainViews.forEach((view) => view.draw(main)); setThreshold(state.threshold); sayStability(); }
allViews().forEach((view) => view.fit());
// What is below the first screen waits until the page can be read
window.addEventListener("load", () => setTimeout(drawCharts, 0));
