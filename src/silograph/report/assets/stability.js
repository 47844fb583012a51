/* How often half-samples found each edge: the bar that the reader sets, which edges reach it, and what is said of it.
   A run without half-samples has none of this, and all of its edges count as reaching the bar. */

const halves = run.stability;
const ROUNDING = 1e-9;  // stabilities and the bar are parts of whole numbers

const stabilityOf = (graph, edge) => graph.columns.stability ? graph.columns.stability[edge] : null;
const isStable = (graph, edge) => !graph.columns.stability || graph.columns.stability[edge] >= state.bar / 100 - ROUNDING;
const isHidden = (graph, edge) => state.hide && !isStable(graph, edge);
const percentText = (part) => `${Math.round(100 * part)}%`;
const barText = () => `in at least ${state.bar}% of half-samples`;

/* Edges from the weight of the slider on, the strongest first, without those that are hidden. */
function shownEdges(graph) {
  const above = graph.ranked.slice(0, countFrom(graph, state.threshold));
  return state.hide ? above.filter((edge) => isStable(graph, edge)) : above;
}

const countStable = (graph) => graph.rows.reduce((count, _, edge) => count + (isStable(graph, edge) ? 1 : 0), 0);

/* Of a graph whose page has only the strongest edges, these are counted. */
function stableText(graph, verb) {
  const held = graph.rows.length < graph.total ? `the strongest ${counted(graph.rows.length, "edge")}` : counted(graph.rows.length, "edge");
  return `${countStable(graph).toLocaleString("en")} of ${held}${verb}`;
}

function sayStability() {
  if (!halves) return;
  const kept = countStable(main), bound = halves.bounds[state.bar], whole = main.rows.length === main.total;
  byId("stability-says").textContent = stableText(main, `${hasSilos ? " of the consensus" : ""} were found ${barText()}.`);
  byId("silo-stability-says").textContent = others.length && state.graph.columns.stability ? `Of ${state.graph.name}: ${stableText(state.graph, ".")}` : "";
  byId("bound-says").textContent = !whole || !kept || bound === null ? ""
    : bound < kept ? `At most ${Number(bound.toPrecision(2))} of these ${kept.toLocaleString("en")} are expected to be false; “Can I trust it?” above says what this assumes.`
    : "How many of these are false cannot be bounded at this bar: move it up.";
  byId("bar-text").textContent = `${state.bar}%`;
  byId("bar").setAttribute("aria-valuetext", `${state.bar} percent of half-samples`);
  document.querySelectorAll(".bar-says").forEach((one) => { one.textContent = `${one.dataset.before} ${state.bar}% of half-samples`; });
}

/* In words beside a pointer. */
function stabilityLine(graph, edge) {
  const part = stabilityOf(graph, edge);
  if (part === null) return [];
  const { low, high } = graph.columns;
  return [`found in ${percentText(part)} of half-samples; weight ${short(low[edge])} to ${short(high[edge])} in 90% of them`];
}
