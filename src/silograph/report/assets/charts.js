/* Charts by plotly. Its labels know some markup, so that names are escaped before they become labels. */

const plain = (name, most = 22) => clipped(name, most).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const CONFIG = { displaylogo: false, responsive: true, typesetMath: false, modeBarButtons: [["toImage"]], plotlyServerURL: "",
  toImageButtonOptions: { format: "svg", filename: "silograph" } };
const FONT = { family: "system-ui, sans-serif", size: 13, color: INK };
const AXIS = { gridcolor: "#eceff2", linecolor: SOFT, zeroline: false, ticks: "outside", tickcolor: SOFT, automargin: true, fixedrange: true };
const WEIGHTS = [[0, "#ffffff"], [.02, "#e6f2f0"], [.15, "#9ccfc5"], [.45, "#33897f"], [1, "#06322f"]];
const UNSTABLE = [[0, "#e4e7eb"], [.15, "#cfd4da"], [1, "#9aa3ad"]];
const ALIKE = [[0, "#ffffff"], [1, "#1f6f67"]];
const DIFFERENCE = [[0, BLUE], [.5, "#ffffff"], [1, RED]];
const MOST_CELLS = 500;  // along a side of a matrix; more nodes are put together
const title = (text) => ({ text, font: { size: 13 } });
const narrow = () => window.innerWidth < 600;

function chart(id, traces, layout) {
  Plotly.react(byId(id), traces, { font: FONT, paper_bgcolor: "#fff", plot_bgcolor: "#fff", margin: { l: 56, r: 16, t: 10, b: 48 }, showlegend: false,
    hoverlabel: { bgcolor: INK, font: { color: "#fff", size: 13 }, align: "left" }, ...layout }, CONFIG);
}

function says(id, text) {
  byId(id).classList.add("empty");
  byId(id).textContent = text;
}

/* Nodes in the order of communities; where there are many, some stand in one cell. */
const perCell = Math.ceil(nodeCount / MOST_CELLS), cells = Math.ceil(nodeCount / perCell);
const cellOf = new Array(nodeCount);
run.order.forEach((node, place) => { cellOf[node] = Math.floor(place / perCell); });

/* The weights of the edges that `left` does not leave out; by default, of those that are not hidden. */
function matrixOf(graph, minus = null, left = isHidden) {
  const matrix = Array.from({ length: cells }, () => new Float32Array(cells));
  const add = (one, sign) => one.rows.forEach((row, edge) => {
    if (left(one, edge)) return;
    const a = cellOf[row], b = cellOf[one.cols[edge]], value = sign * one.weights[edge];
    const put = (i, j) => { matrix[i][j] = perCell === 1 ? matrix[i][j] + value : Math.abs(value) > Math.abs(matrix[i][j]) ? value : matrix[i][j]; };
    put(a, b);
    if (a !== b) put(b, a);
  });
  add(graph, 1);
  if (minus) add(minus, -1);
  const seen = new Set([...run.nodes.keys()].filter((node) => !graph.lacks.has(node)).map((node) => cellOf[node]));
  matrix.forEach((row, i) => row.forEach((_, j) => { if (!seen.has(i) || !seen.has(j)) row[j] = NaN; }));
  return matrix;
}

/* Edges below the bar alone: they are drawn grey, above the others. */
function unstableCells(graph, matrix) {
  if (!graph.columns.stability || state.hide) return null;
  const firm = matrixOf(graph, null, (one, edge) => !isStable(one, edge));
  return matrix.map((row, i) => row.map((value, j) => value > 0 && firm[i][j] === 0 ? value : NaN));
}

function drawMatrix(id, matrix, { difference = false, gaps = false, unstable = null } = {}) {
  const named = perCell === 1, shown = named && nodeCount <= (narrow() ? 12 : 60);
  const names = run.order.map((node) => plain(run.nodes[node], narrow() ? 10 : 16));
  const marks = [...names.keys()];
  const namedBelow = shown && nodeCount <= 26;  // those below stand closer to each other than those beside
  const ticks = (yes) => yes ? { tickvals: marks, ticktext: names, tickfont: { size: nodeCount > 36 ? 9 : 11 } } : { showticklabels: false, ticks: "" };
  const axis = { ...AXIS, showgrid: false, constrain: "domain", constraintoward: "center", range: [-.5, cells - .5], fixedrange: false };
  const caption = named ? "nodes, in the order of their groups" : `${nodeCount} nodes in the order of their groups, ${perCell} to a cell`;
  const limit = difference ? Math.max(...matrix.map((row) => row.reduce((most, value) => Math.max(most, Math.abs(value) || 0), 0))) || 1 : largest;
  const spaced = { xgap: cells <= 60 && !gaps ? 1 : 0, ygap: cells <= 60 && !gaps ? 1 : 0 };
  const grey = unstable ? [{ type: "heatmap", z: unstable, zmin: 0, zmax: limit, colorscale: UNSTABLE, showscale: false, hoverinfo: "skip", ...spaced }] : [];
  chart(id, [{ type: "heatmap", z: matrix, zmin: difference ? -limit : 0, zmax: limit, colorscale: difference ? DIFFERENCE : WEIGHTS,
    hoverinfo: "none", ...spaced,
    colorbar: { title: { text: difference ? "difference" : "weight", side: "top" }, thickness: 12, len: .6, outlinewidth: 0, tickfont: { size: 11 } } }, ...grey],
    { margin: { l: 8, r: 8, t: 8, b: namedBelow ? 8 : 34 }, shapes: named ? communityLines() : [], plot_bgcolor: gaps ? styled("absent") : "#fff",
      xaxis: { ...axis, ...ticks(namedBelow), tickangle: -60, title: namedBelow ? undefined : { text: caption, font: { size: 12, color: SOFT } } },
      yaxis: { ...axis, ...ticks(shown), range: [cells - .5, -.5], scaleanchor: "x", constraintoward: "top" } });
  tellCells(byId(id));
}

/* Names of a cell's nodes as text beside the pointer: made when asked for, as there may be a quarter of a million. */
function tellCells(matrix) {
  if (matrix.told) return;
  matrix.told = true;
  const names = (cell) => run.order.slice(cell * perCell, (cell + 1) * perCell).map((node) => run.nodes[node]).join(", ");
  matrix.on("plotly_hover", ({ points: [{ x, y, z }], event }) => showTip({ originalEvent: event }, `${names(y)}\n${names(x)}\n${Number.isFinite(z) ? short(z) : "not observed"}`));
  matrix.on("plotly_unhover", () => { tip.hidden = true; });
}

/* A frame around each community. */
function communityLines() {
  const groups = run.order.map((node) => run.community[node]), shapes = [];
  for (let start = 0, place = 1; place <= nodeCount; place += 1) {
    if (place < nodeCount && groups[place] === groups[start]) continue;
    if (place - start > 1) shapes.push({ type: "rect", x0: start - .5, x1: place - .5, y0: start - .5, y1: place - .5, line: { color: "#e09f3e", width: 1.5 } });
    start = place;
  }
  return shapes.length > 1 ? shapes : [];
}

function drawMatrices() {
  const difference = others.length > 0 && byId("matrix-kind").value === "difference";
  byId("matrix-main-name").textContent = main.name;
  sayMatrices();
  const bar = `${state.bar} ${state.hide}`, draw = (id, graph, looks) => { const matrix = matrixOf(graph); drawMatrix(id, matrix, { ...looks, unstable: unstableCells(graph, matrix) }); };
  if (drawMatrices.bar !== bar) draw("matrix-main", main);
  drawMatrices.bar = bar;
  if (!others.length) { byId("matrix-silo-figure").remove?.(); byId("matrix-controls").hidden = true; return; }
  byId("matrix-silo-name").textContent = difference ? `${state.graph.name} minus consensus` : state.graph.name;
  const gaps = state.graph.lacks.size > 0;
  byId("absent-says").hidden = !gaps;
  if (difference) drawMatrix("matrix-silo", matrixOf(state.graph, main), { difference, gaps });
  else draw("matrix-silo", state.graph, { gaps });
}

function drawContributions() {
  const told = run.silos.filter((silo) => silo.share !== null && silo.drawn), equal = 1 / run.silos.length;
  if (!told.length) { says("contributions", run.silos.length > 1 ? "Silos did not tell their contributions." : "What other silos contributed is not known here."); return; }
  const label = (silo) => silo.fused ? "∞, fused" : `γ ${short(silo.contribution)}`;
  const most = Math.max(...told.map((silo) => silo.share));
  chart("contributions", [
    { type: "bar", orientation: "h", y: told.map((_, place) => place), x: told.map((silo) => silo.share), text: told.map(label), textposition: "auto", insidetextanchor: "start", cliponaxis: false,
      marker: { color: SOFT }, customdata: told.map((silo) => plain(silo.name, 40)), hovertemplate: "%{customdata}: %{x:.1%} (%{text})<extra></extra>" }],
    { height: Math.max(240, (told.length > 25 ? 18 : 30) * told.length + 80), margin: { l: 8, r: 8, t: 22, b: 44 },
      xaxis: { ...AXIS, tickformat: equal < .02 ? ".2%" : ".0%", range: [0, Math.max(most, equal) * 1.12], title: title("share of all contributions") },
      yaxis: { ...AXIS, ticks: "", tickvals: told.map((_, place) => place), ticktext: told.map((silo) => `${plain(silo.name)} `), range: [told.length - .4, -.6], showgrid: false },
      shapes: [{ type: "line", x0: equal, x1: equal, yref: "paper", y0: 0, y1: 1, line: { color: INK, width: 1.5, dash: "dot" } }],
      annotations: [{ x: equal, y: 1, yref: "paper", yanchor: "bottom", text: "equal shares", showarrow: false, font: { size: 11, color: SOFT } }] });
}

function drawSimilarity() {
  if (!run.similarity || run.similarity.names.length < 3) { says("similarity", "There are no two silos' graphs here to compare."); return; }
  const { names, values } = run.similarity, labels = names.map((name) => plain(name, 14)), places = labels.map((_, place) => place);
  const small = names.length <= (narrow() ? 8 : 13);
  const axis = { ...AXIS, ticks: "", showgrid: false, tickvals: places, ticktext: labels, constrain: "domain", showticklabels: names.length <= 40 };
  const text = values.map((row) => row.map((value) => value.toFixed(2)));
  chart("similarity", [{ type: "heatmap", z: values, zmin: 0, zmax: 1, colorscale: ALIKE, xgap: 1, ygap: 1, text, texttemplate: small ? "%{text}" : "",
    textfont: { size: narrow() ? 10 : 12 }, customdata: values.map((row, i) => row.map((_, j) => `${labels[i]} and ${labels[j]}`)),
    hovertemplate: "%{customdata}: %{z:.2f}<extra></extra>", colorbar: { thickness: 12, len: .7, outlinewidth: 0, tickfont: { size: 11 } } }],
    { height: Math.max(300, Math.min(30 * names.length + 110, 520)), margin: { l: 8, r: 8, t: 6, b: 8 },
      xaxis: { ...axis, tickangle: -45 }, yaxis: { ...axis, range: [names.length - .5, -.5] } });
}

function drawDegrees() {
  const shown = others.length ? [main, state.graph] : [main];
  const degrees = shown.map((graph) => degreesShown(graph));
  const most = degrees.flat().reduce((a, b) => Math.max(a, b), 0);
  const width = Math.max(1, Math.ceil((most + 1) / 25)), bins = Math.floor(most / width) + 1;
  const labels = Array.from({ length: bins }, (_, bin) => width === 1 ? `${bin}` : `${bin * width}–${bin * width + width - 1}`);
  const looks = [{ color: hasSilos ? RED : SOFT }, { color: BLUE, pattern: { shape: "/", bgcolor: BLUE, fgcolor: "#fff", size: 6, solidity: .25 } }];
  chart("degrees", degrees.map((degree, which) => {
    const counts = new Array(bins).fill(0);
    degree.forEach((value, node) => { if (!shown[which].lacks.has(node)) counts[Math.floor(value / width)] += 1; });
    return { type: "bar", name: plain(shown[which].name), x: labels.map((_, bin) => bin), y: counts, customdata: labels, marker: looks[which],
      hovertemplate: "%{y} nodes with %{customdata} neighbours<extra></extra>" };
  }), { showlegend: shown.length > 1, barmode: "group", bargap: .2, height: 320, legend: { orientation: "h", y: 1.08, x: 0, yanchor: "bottom" },
    xaxis: { ...AXIS, title: title("neighbours"), tickvals: labels.map((_, bin) => bin).filter((bin) => bins <= 14 || bin % 2 === 0), ticktext: labels.filter((_, bin) => bins <= 14 || bin % 2 === 0), showgrid: false },
    yaxis: { ...AXIS, title: title("nodes"), rangemode: "tozero" }, margin: { l: 56, r: 12, t: shown.length > 1 ? 30 : 10, b: 48 } });
  const which = [state.threshold > 0 ? `of weight ${short(state.threshold)} or more` : "", state.hide ? `found ${barText()}` : ""].filter(Boolean);
  byId("degrees-says").textContent = which.length ? `by edges ${which.join(", ")}` : "by all edges";
}

function drawConvergence() {
  const told = run.convergence;
  if (!told) { byId("convergence-says").textContent = ""; says("convergence", hasSilos && !run.isNewcomer ? "The rounds are written down at the coordinator." : `${hasSilos ? "Beside a consensus that stays as it is, a newcomer" : "One table"} is solved at once, without rounds: ${run.verdict.text}.`); return; }
  const key = told.certified ? "gap" : "moved", points = told.rounds.filter((one) => one[key] !== null);
  const known = points.filter((one) => one[key] > 0);
  if (!known.length) { says("convergence", told.certified ? "The gap was 0 as soon as it was known." : "This method tells nothing of its rounds."); return; }
  byId("convergence-says").textContent = told.certified ? "the certified gap bounds what is left to gain" : "no certificate: how far the graphs moved in each round";
  const rounds = told.rounds.map((one) => one.round), bar = told.certified ? [{ type: "scatter", mode: "lines", x: [Math.min(...rounds), Math.max(...rounds)], y: [told.tolerance, told.tolerance],
    line: { color: INK, dash: "dash", width: 1.5 }, name: `tolerance ${short(told.tolerance)}`, hoverinfo: "name" }] : [];
  chart("convergence", [{ type: "scatter", mode: known.length > 60 ? "lines" : "lines+markers", x: known.map((one) => one.round), y: known.map((one) => one[key]), line: { color: RED, width: 2 }, marker: { size: 6 },
    name: told.certified ? "certified relative gap" : "movement", hovertemplate: "round %{x}: %{y:.2e}<extra></extra>" }, ...bar],
    { height: 320, showlegend: true, legend: { orientation: "h", y: 1.08, x: 0, yanchor: "bottom" }, margin: { l: 70, r: 12, t: 30, b: 48 },
      xaxis: { ...AXIS, title: title("round"), tickformat: "d", nticks: 10, rangemode: "tozero" },
      yaxis: { ...AXIS, type: "log", exponentformat: "power", tickfont: { size: 12 }, dtick: known.length > 3 ? 1 : undefined, title: title(told.certified ? "relative gap" : "movement") } });
}

/* Of rising numbers those whose labels do not meet. */
const apart = (tried) => tried.reduce((kept, one) => kept.length && one - kept.at(-1) < .06 * tried.at(-1) ? kept : [...kept, one], []);

/* The loss on held-out rows by coupling; marked are the least and the one that was chosen, which may lie between two that were tried. */
function drawCoupling() {
  const { tried, losses, chosen, least } = run.coupling, best = losses[tried.indexOf(least)];
  const marks = chosen === least ? [[chosen, "chosen, and the least loss"]] : [[chosen, "chosen"], [least, "least loss"]];
  const mark = ([at, text]) => ({ x: at, y: 1, yref: "paper", yanchor: "bottom", xanchor: at > .6 * tried.at(-1) ? "right" : at < .1 * tried.at(-1) ? "left" : at >= chosen && at >= least && marks.length > 1 ? "left" : marks.length > 1 ? "right" : "center", text, showarrow: false, font: { size: 12, color: text.startsWith("chosen") ? RED : SOFT } });
  const line = ([at, text]) => ({ type: "line", x0: at, x1: at, yref: "paper", y0: 0, y1: 1, line: { color: text.startsWith("chosen") ? RED : SOFT, width: text.startsWith("chosen") ? 2 : 1.5, dash: text.startsWith("chosen") ? "solid" : "dot" } });
  chart("coupling", [
    { type: "scatter", mode: "lines+markers", x: tried, y: losses, line: { color: INK, width: 2 }, marker: { size: 7, color: INK }, cliponaxis: false, hovertemplate: "coupling %{x}: loss %{y:.5g}<extra></extra>" },
    { type: "scatter", mode: "markers", x: [least], y: [best], marker: { size: 15, color: "rgba(0,0,0,0)", line: { color: SOFT, width: 2 } }, hoverinfo: "skip" }],
    { height: 300, margin: { l: 70, r: 16, t: 26, b: 48 }, shapes: marks.map(line), annotations: marks.map(mark),
      xaxis: { ...AXIS, title: title("coupling"), tickvals: narrow() ? undefined : apart(tried), rangemode: "tozero" },
      yaxis: { ...AXIS, title: title("loss on held-out rows"), tickformat: "~g", nticks: 6 } });
}

/* Distances on one line; dots that would lie on each other stand above each other. */
function drawNewcomer() {
  const { name, distance, distances } = run.newcomer, all = [...distances, distance];
  const width = (Math.max(...all) - Math.min(...all) || 1) / 40, stacks = new Map();
  const height = (value) => { const cell = Math.round(value / width), there = stacks.get(cell) || 0; stacks.set(cell, there + 1); return there; };
  const dots = distances.map(height);
  chart("newcomer", [
    { type: "scatter", mode: "markers", x: distances, y: dots, marker: { size: 10, color: SOFT }, cliponaxis: false, hovertemplate: "%{x:.3g}<extra></extra>" },
    { type: "scatter", mode: "markers", x: [distance], y: [0], marker: { size: 14, color: RED, symbol: "diamond" }, cliponaxis: false, hovertemplate: `${plain(name, 40)}: %{x:.3g}<extra></extra>` }],
    { height: 190, margin: { l: 16, r: 16, t: 26, b: 48 }, shapes: [{ type: "line", x0: distance, x1: distance, yref: "paper", y0: 0, y1: 1, line: { color: RED, width: 2 } }],
      annotations: [{ x: distance, y: 1, yref: "paper", yanchor: "bottom", xanchor: distance > (Math.max(...all) + Math.min(...all)) / 2 ? "right" : "left", text: plain(name), showarrow: false, font: { size: 12, color: RED } }],
      xaxis: { ...AXIS, title: title("distance to the consensus") }, yaxis: { visible: false, fixedrange: true, range: [-.8, Math.max(3, ...dots) + .8] } });
}
