/* What is said in words: title, reading, silos, record. */

function fillWords() {
  document.title = `${run.title} · silograph`;
  byId("title").textContent = run.title;
  byId("subtitle").textContent = run.subtitle;
  const verdict = byId("verdict");
  verdict.textContent = run.verdict.text;
  verdict.classList.add(run.verdict.good === null ? "none" : run.verdict.good ? "good" : "bad");
  const told = byId("stable-badge");
  if (halves) told.textContent = `${countStable(main).toLocaleString("en")} of ${counted(main.rows.length, "edge")} in ≥ ${halves.percent}% of half-samples`;
  told.hidden = !halves || main.rows.length < main.total;
  byId("doubts").hidden = !run.doubts.length;
  byId("doubts-list").append(...run.doubts.map((text) => element("li", text)));
  for (const answer of run.reading) {
    const card = element("div", null, { class: "answer" });
    const list = element("ul");
    list.append(...answer.sentences.map((sentence) => element("li", sentence)));
    card.append(element("h2", answer.question), list);
    byId("reading").append(card);
  }
  byId("layout-says").textContent = run.layout.says + " Hold Ctrl to zoom with the wheel; choose a node to see its neighbours.";
  fillSilos();
  fillRecord();
}

function fillSilos() {
  if (!hasSilos || run.isNewcomer) { byId("silos-section").hidden = true; return; }
  const table = byId("silos-table");
  const head = element("tr");
  const lacks = run.silos.some((silo) => silo.missing.length), drops = run.silos.some((silo) => silo.dropped), several = run.silos.length > 1, stable = run.silos.some((silo) => silo.stable !== null);
  const columns = ["silo", "samples", ...(drops ? ["rows dropped"] : []), "edges", ...(stable ? ["stable edges"] : []), "weight on edges of its own", "contribution γ", ...(several ? ["share"] : []), ...(lacks ? ["nodes not observed"] : [])];
  columns.forEach((name, column) => head.append(element("th", name, { scope: "col", class: column ? "number" : "" })));
  table.append(element("thead"), element("tbody"));
  table.tHead.append(head);
  const told = (value, as = String) => value === null || value === undefined ? "not told" : as(value);
  const percent = (value) => `${(100 * value).toFixed(0 < value && value < .01 ? 2 : 0)}%`;
  const some = (names) => names.length > 8 ? `${names.slice(0, 8).join(", ")} and ${names.length - 8} more` : names.join(", ");
  let site = null;
  const bySite = [...new Set(run.silos.map((silo) => silo.site))].flatMap((one) => run.silos.filter((silo) => silo.site === one));
  for (const silo of bySite) {
    if (silo.site !== null && silo.site !== site) table.tBodies[0].append(siteRow(silo.site, columns.length));
    site = silo.site;
    const row = element("tr");
    const weight = silo.fused ? "∞ (fused)" : told(silo.contribution, even);
    const cells = [told(silo.samples), ...(drops ? [String(silo.dropped)] : []), told(silo.edges), ...(stable ? [told(silo.stable)] : []), silo.here ? percent(silo.own) : "kept by the site", weight, ...(several ? [told(silo.share, percent)] : [])];
    const name = silo.silos ? `${silo.name} (${counted(silo.silos, "silo")} together)` : silo.name;
    row.append(element("th", name, { scope: "row" }), ...cells.map((text) => element("td", text, { class: "number" })));
    if (lacks) row.append(element("td", silo.missing.length ? `${silo.missing.length}: ${some(silo.missing)}` : "none", { class: "names", title: silo.missing.join(", ") }));
    table.tBodies[0].append(row);
  }
  const drawn = run.silos.filter((silo) => silo.drawn).length;
  if (drawn < run.silos.length) {
    byId("drawn-says").textContent = `Of ${counted(run.silos.length, "silo")}, graphs, contributions and similarities of the ${drawn} farthest from the consensus are drawn `
      + "on this page. The table above has all; the graphs of the others are in the run’s folder.";
  }
  if (stable) byId("stable-edges-says").textContent = `Stable edges are those found in at least ${run.stableFrom}% of half-samples, each half of the silo’s rows.`;
  if (run.kept.length) {
    byId("kept-says").textContent = `${counted(run.kept.length, "site")} kept ${run.kept.length === 1 ? "its graph" : "their graphs"} `
      + `(${some(run.kept)}): only what ${run.kept.length === 1 ? "it" : "they"} told is shown.`;
  }
}

/* A line above the silos of one site. */
function siteRow(site, width) {
  const own = run.silos.filter((silo) => silo.site === site), samples = own.map((silo) => silo.samples);
  const total = samples.includes(null) ? "" : `, ${counted(samples.reduce((a, b) => a + b, 0), "sample")}`;
  const row = element("tr", null, { class: "site" });
  row.append(element("th", `${site}: ${counted(own.length, "silo")}${total}`, { scope: "colgroup", colspan: width }));
  return row;
}

function fillRecord() {
  for (const part of run.record) {
    if (!part.rows.length) continue;
    const long = part.rows.some(([, value]) => value.length > 60);
    const block = element("div", null, { class: long ? "long" : "" });
    const table = element("table");
    for (const [name, value] of part.rows) {
      const row = table.insertRow();
      row.append(element("td", name), element("td", value));
    }
    block.append(element("h3", part.title), table);
    byId("record").append(block);
  }
}
