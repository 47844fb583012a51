/* The graphs of the page: consensus and silo side by side, moved together; a brain's three views; small ones to choose from. */

const MOST_THUMBS = 24, THUMB_EDGES = 400;

const state = { graph: others[0] || main, threshold: run.threshold, bar: halves ? halves.percent : 0, hide: false, node: null };
const views = [];

/* What a pointer is over, in words. */
const tip = byId("tip");
function showTip(event, text) {
  tip.textContent = text;
  tip.hidden = false;
  const { clientX, clientY } = event.originalEvent.touches?.[0] || event.originalEvent;
  const left = Math.min(clientX + 14, window.innerWidth - tip.offsetWidth - 8);
  const top = clientY + 18 + tip.offsetHeight > window.innerHeight ? clientY - tip.offsetHeight - 10 : clientY + 18;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

function edgeText(graph, edge) {
  const code = graph.code[edge];
  const lines = [`${run.nodes[graph.rows[edge]]} – ${run.nodes[graph.cols[edge]]}`, `weight ${short(graph.weights[edge])} in ${graph.name}`];
  if (hasSilos) {
    if (!graph.main) lines.push(main.weightOf.has(code) ? `consensus: ${short(main.weightOf.get(code))}` : "not in the consensus");
    if (run.silos.length > 1) lines.push(`an edge of ${having(code).length} of ${counted(observing(code).length, "silo")}`);
  }
  return [...lines, ...stabilityLine(graph, edge)].join("\n");
}

function nodeText(graph, node) {
  if (graph.lacks.has(node)) return `${run.nodes[node]}\nnot observed in ${graph.name}`;
  const near = neighboursOf(graph, node);
  const names = near.slice(0, 5).map((one) => `${run.nodes[one.node]} (${short(one.weight)})`);
  const rest = near.length > 5 ? ` and ${near.length - 5} more` : "";
  return `${run.nodes[node]}\n${counted(near.length, "neighbour")} shown in ${graph.name}${near.length ? `: ${names.join(", ")}${rest}` : ""}`;
}

function watch(view) {
  const { cy } = view;
  cy.on("mouseover tapstart", "edge", (event) => { event.target.addClass("over"); showTip(event, edgeText(view.graph, event.target.data("edge"))); });
  cy.on("mouseover", "node", (event) => { if (event.target.data("node") !== undefined) showTip(event, nodeText(view.graph, event.target.data("node"))); });
  cy.on("mouseout tapend", "edge, node", (event) => { event.target.removeClass("over"); tip.hidden = true; });
  cy.on("viewport", () => { tip.hidden = true; });
  cy.on("tap", (event) => choose(event.target === cy ? null : event.target.data("node") ?? state.node));
  view.container.addEventListener("keydown", (event) => moveByKey(view, event));
}

function moveByKey(view, event) {
  const pan = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
  if (pan) view.cy.panBy({ x: pan[0], y: pan[1] });
  else if (event.key === "+" || event.key === "=") zoomBy(1.25, view);
  else if (event.key === "-") zoomBy(0.8, view);
  else if (event.key === "Escape") choose(null);
  else return;
  event.preventDefault();
}

function zoomBy(factor, view = views[0]) {
  const { cy } = view;
  cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
}

/* Two views of the same size show the same part of the drawing. */
function link(one, other) {
  let following = false;
  const follow = (from, to) => from.cy.on("viewport", () => {
    if (following) return;
    following = true;
    to.cy.viewport({ zoom: from.cy.zoom(), pan: from.cy.pan() });
    following = false;
  });
  follow(one, other);
  follow(other, one);
}

function buildViews() {
  const pair = [byId("main-view")];
  if (others.length) pair.push(byId("silo-view"));
  else { byId("silo-figure").remove(); byId("silo-control").remove(); byId("views").classList.add("single"); }
  const flat = run.layout.space ? brainView("Axial") : { places: run.layout.places, backdrop: null };
  views.push(...pair.map((container) => new GraphView(container, flat.places, flat.backdrop)));
  views[0].draw(main);
  views.forEach(watch);
  if (views[1]) link(views[0], views[1]);
}

/* A brain seen from one side: places and head in the same units. */
const AXES = { Sagittal: [1, 2], Axial: [0, 1], Coronal: [0, 2] };
function brainView(name) {
  const [across, up] = AXES[name], unit = (millimetres) => millimetres / 200;
  const { path, box } = run.outlines[name], [left, low, right, high] = box;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${left} ${-high} ${right - left} ${high - low}" width="${4 * (right - left)}" height="${4 * (high - low)}">`
    + `<path d="${path}" fill="none" stroke="${OUTLINE}" stroke-width="0.7"/></svg>`;
  return { places: run.layout.space.map((place) => [unit(place[across]), unit(place[up])]),
    backdrop: { image: `data:image/svg+xml;utf8,${encodeURIComponent(svg)}`, box: box.map(unit) } };
}

const brainViews = [];
function buildBrain() {
  if (!run.layout.space) return;
  byId("brain").hidden = false;
  for (const name of Object.keys(AXES)) {
    const figure = element("figure"), container = element("div", null, { class: "view", tabindex: "0", role: "img" });
    const sides = { Sagittal: "seen from the side, front to the right", Axial: "seen from above, front up, left on the left", Coronal: "seen from behind, left on the left" }[name];
    const caption = element("figcaption");
    caption.append(element("strong", name), " ", element("span", sides, { class: "hint" }));
    figure.append(caption, container);
    byId("brain-views").append(figure);
    const { places, backdrop } = brainView(name);
    const view = new GraphView(container, places, backdrop);
    watch(view);
    brainViews.push(view);
  }
}

/* Small graphs of all silos, to compare at a glance and to choose from. */
function buildThumbs() {
  if (!others.length) return;
  for (const graph of run.graphs.slice(0, MOST_THUMBS + 1)) {
    const thumb = element("button", null, { type: "button", class: "thumb", title: graph.main ? graph.name : `Show ${graph.name}` });
    thumb.append(element("canvas"), element("span", graph.name));
    thumb.graph = graph;
    if (graph.main) thumb.disabled = true; else thumb.addEventListener("click", () => showGraph(graph));
    byId("thumbs").append(thumb);
  }
  if (others.length > MOST_THUMBS) byId("thumbs-says").textContent = `Small graphs of ${MOST_THUMBS} silos; choose one of the other ${others.length - MOST_THUMBS} by name above.`;
}

function drawThumb(thumb) {
  const { graph } = thumb, canvas = thumb.firstChild, scale = 2;
  const width = 150, height = 130, pad = 10;
  canvas.width = width * scale; canvas.height = height * scale;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  const fit = Math.min(width, height) - 2 * pad;
  const at = (node) => [width / 2 + fit * (run.layout.places[node][0] - .5), height / 2 - fit * (run.layout.places[node][1] - .5)];
  const strongest = shownEdges(graph).slice(0, THUMB_EDGES);
  for (const edge of strongest.reverse()) {
    context.strokeStyle = colourOf(graph, edge);
    context.globalAlpha = isStable(graph, edge) ? .75 : .18;
    context.lineWidth = .5 + 2 * Math.sqrt(graph.weights[edge] / largest);
    context.beginPath(); context.moveTo(...at(graph.rows[edge])); context.lineTo(...at(graph.cols[edge])); context.stroke();
  }
  context.globalAlpha = 1;
  context.fillStyle = INK;
  if (nodeCount <= 150) run.nodes.forEach((_, node) => { context.beginPath(); context.arc(...at(node), nodeCount > 40 ? .8 : 1.4, 0, 7); context.fill(); });
}

const drawThumbs = () => document.querySelectorAll(".thumb").forEach(drawThumb);

/* What is said of a view: how many edges it shows, and of how many. */
function countText(view) {
  const { graph } = view, above = shownEdges(graph).length;
  const text = `${above.toLocaleString("en")} of ${counted(graph.total, "edge")}`;
  if (view.visible < above) return `${text}, the strongest ${view.visible.toLocaleString("en")} drawn`;
  return text;
}

function refreshCounts() {
  byId("main-count").textContent = countText(views[0]);
  byId("main-view").setAttribute("aria-label", `Drawing of ${main.name}: ${countText(views[0])}`);
  if (!views[1]) return;
  byId("silo-count").textContent = countText(views[1]);
  byId("silo-view").setAttribute("aria-label", `Drawing of ${state.graph.name}: ${countText(views[1])}`);
}

function listNeighbours() {
  const panel = byId("neighbours");
  panel.hidden = state.node === null;
  if (state.node === null) return;
  panel.replaceChildren();
  for (const graph of others.length ? [main, state.graph] : [main]) {
    const near = neighboursOf(graph, state.node), list = element("ul");
    for (const { node, edge, weight } of near.slice(0, 30)) {
      const item = element("li", null, { class: isStable(graph, edge) ? "" : "unsure" }), part = stabilityOf(graph, edge), button = element("button", run.nodes[node], { type: "button" });
      button.addEventListener("click", () => choose(node));
      item.append(button, element("span", part === null ? short(weight) : `${short(weight)}, found in ${percentText(part)}`, { class: "number" }));
      list.append(item);
    }
    const more = near.length > 30 ? `, the strongest 30 listed` : "";
    panel.append(element("h3", `${run.nodes[state.node]} in ${graph.name}: ${counted(near.length, "neighbour")} shown${more}`), list);
  }
}
