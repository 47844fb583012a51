/* The edges of one graph as a table: sorted, searched, downloaded. */

const PAGE_ROWS = 25;
const table = { graph: others.length ? state.graph : main, sort: "weight", down: true, query: "", rows: PAGE_ROWS };

function tableColumns() {
  const { graph } = table, name = (ends) => (edge) => run.nodes[graph[ends][edge]];
  const columns = [
    { key: "source", title: "source", value: name("rows"), text: name("rows") },
    { key: "target", title: "target", value: name("cols"), text: name("cols") },
    { key: "weight", title: "weight", number: true, value: (edge) => graph.weights[edge], text: (edge) => even(graph.weights[edge]) },
  ];
  columns.push(...signColumns(graph), ...stabilityColumns(graph));
  if (!hasSilos) return columns;
  const inMain = (edge) => main.weightOf.get(graph.code[edge]) || 0;
  const count = (edge) => having(graph.code[edge]).length;
  if (!graph.main) columns.push({ key: "consensus", title: "in consensus", number: true, value: inMain, text: (edge) => inMain(edge) ? even(inMain(edge)) : "–" });
  if (run.silos.length > 1) columns.push({ key: "silos", title: "silos with it", number: true, value: count, text: (edge) => `${count(edge)} of ${observing(graph.code[edge]).length}` });
  return columns;
}

/* ✓: an edge of the second opinion, too. */
function signColumns(graph) {
  const { partial_correlation: value } = graph.columns;
  if (!value) return [];
  return [{ key: "partial", title: "partial correlation (✓: both agree)", number: true, value: (edge) => value[edge], text: (edge) => `${value[edge].toFixed(2)}${graph.agreed[edge] ? " ✓" : ""}` }];
}

function stabilityColumns(graph) {
  const { stability, low, high } = graph.columns;
  if (!stability) return [];
  return [
    { key: "stability", title: "found in half-samples", number: true, part: (edge) => stability[edge], value: (edge) => stability[edge], text: (edge) => percentText(stability[edge]) },
    { key: "interval", title: "weight there, 5% to 95%", number: true, value: (edge) => low[edge], text: (edge) => `${even(low[edge])} to ${even(high[edge])}` },
  ];
}

function drawTable() {
  const { graph } = table, columns = tableColumns(), query = table.query.trim().toLowerCase();
  const sorted = columns.find((column) => column.key === table.sort) || columns[2];
  const found = graph.rows.map((_, edge) => edge).filter((edge) => !isHidden(graph, edge)).filter((edge) => !query
    || run.nodes[graph.rows[edge]].toLowerCase().includes(query) || run.nodes[graph.cols[edge]].toLowerCase().includes(query));
  const keys = new Map(found.map((edge) => [edge, sorted.value(edge)])), sign = table.down ? -1 : 1;
  const order = new Intl.Collator("en", { numeric: true }).compare;
  const compare = sorted.number ? (a, b) => a - b : order;
  found.sort((a, b) => sign * compare(keys.get(a), keys.get(b)) || a - b);
  drawHead(columns, sorted);
  byId("edges-table").tBodies[0].replaceChildren(...found.slice(0, table.rows).map((edge) => {
    const row = element("tr", null, { class: isStable(graph, edge) ? "" : "unsure" });
    row.append(...columns.map((column) => {
      const cell = element("td", column.text(edge), { class: `${column.number ? "number" : ""}${column.part ? " part" : ""}` });
      if (column.part) cell.style.setProperty("--part", percentText(column.part(edge)));
      return cell;
    }));
    return row;
  }));
  const total = graph.rows.length < graph.total ? ` (of the strongest ${graph.rows.length.toLocaleString("en")}; all ${graph.total.toLocaleString("en")} are in ${graph.file} of the run)` : "";
  const shown = Math.min(table.rows, found.length);
  byId("table-status").textContent = `${counted(found.length, "edge")}${hasSilos ? ` of ${graph.name}` : ""}${query ? " that match" : ""}${state.hide && graph.columns.stability ? `, found ${barText()}` : ""}${total}${shown < found.length ? `, ${shown} shown` : ""}`;
  byId("more").hidden = shown >= found.length;
  byId("download").textContent = `Download ${graph.rows.length < graph.total ? "these" : "all"} edges ${hasSilos ? `of ${clipped(graph.name, 20)} ` : ""}(CSV)`;
}

function drawHead(columns, sorted) {
  const row = element("tr");
  for (const column of columns) {
    const active = column === sorted;
    const cell = element("th", null, { scope: "col", class: column.number ? "number" : "", "aria-sort": active ? (table.down ? "descending" : "ascending") : "none" });
    const button = element("button", `${column.title}${active ? (table.down ? " ↓" : " ↑") : ""}`, { type: "button", "data-column": column.key });
    button.addEventListener("click", () => {
      table.down = active ? !table.down : Boolean(column.number);
      table.sort = column.key;
      drawTable();
      document.querySelector(`#edges-table [data-column="${column.key}"]`).focus();
    });
    cell.append(button);
    row.append(cell);
  }
  byId("edges-table").tHead.replaceChildren(row);
}

function download() {
  const { graph } = table;
  const link = element("a", null, { download: graph.main ? `${graph.name}-edges.csv` : `${graph.name.replace(/[^\w.-]+/g, "_")}-edges.csv` });
  link.href = URL.createObjectURL(new Blob([edgesCsv(graph)], { type: "text/csv;charset=utf-8" }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function buildTable() {
  const choice = byId("table-graph");
  listGraphs(choice, run.graphs);
  choice.value = run.graphs.indexOf(table.graph);
  if (run.graphs.length === 1) byId("table-graph-control").hidden = true;
  choice.addEventListener("change", () => { table.graph = run.graphs[choice.value]; table.rows = PAGE_ROWS; drawTable(); });
  byId("table-search").addEventListener("input", (event) => { table.query = event.target.value; table.rows = PAGE_ROWS; drawTable(); });
  byId("more").addEventListener("click", () => { table.rows += 200; drawTable(); });
  byId("download").addEventListener("click", download);
  drawTable();
}
