/* What is said in words: title, reading, silos, record. */

function fillWords() {
  document.title = `${run.title} · silograph`;
  byId("title").textContent = run.title;
  byId("subtitle").textContent = run.subtitle;
  const verdict = byId("verdict");
  verdict.textContent = run.verdict.text;
  verdict.classList.add(run.verdict.good === null ? "none" : run.verdict.good ? "good" : "bad");
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
  if (!hasSilos) { byId("silos-section").hidden = true; return; }
  const table = byId("silos-table");
  const head = element("tr");
  const columns = ["silo", "samples", "edges", "weight on edges of its own", "contribution γ", "share"];
  columns.forEach((name, column) => head.append(element("th", name, { scope: "col", class: column ? "number" : "" })));
  table.append(element("thead"), element("tbody"));
  table.tHead.append(head);
  const told = (value, as = String) => value === null || value === undefined ? "not told" : as(value);
  const percent = (value) => `${(100 * value).toFixed(0)}%`;
  for (const silo of run.silos) {
    const row = element("tr");
    const weight = silo.fused ? "∞ (fused)" : told(silo.contribution, even);
    const cells = [told(silo.samples), told(silo.edges), silo.here ? percent(silo.own) : "kept by the site", weight, told(silo.share, percent)];
    row.append(element("th", silo.name, { scope: "row" }), ...cells.map((text) => element("td", text, { class: "number" })));
    table.tBodies[0].append(row);
  }
  if (run.kept.length) {
    byId("kept-says").textContent = `${counted(run.kept.length, "site")} kept ${run.kept.length === 1 ? "its graph" : "their graphs"} `
      + `(${run.kept.join(", ")}): only what ${run.kept.length === 1 ? "it" : "they"} told is shown.`;
  }
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
