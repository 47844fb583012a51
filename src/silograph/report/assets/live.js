"use strict";
/* The state of a federation, drawn anew from a file beside this page whenever that file has changed. */
(() => {
  const place = document.getElementById("data");
  const beside = place.dataset.beside;
  const STALE = 6, PATIENCE = 30;  // in periods; seconds between tries where the file is not there
  let shown = null, changed = performance.now(), news = 0, missing = false, opened = new Set(), closed = new Set();

  const at = id => document.getElementById(id);
  function put(parent, tag, text, kind) {
    const made = document.createElement(tag);
    if (text !== undefined && text !== null) made.textContent = text;
    if (kind) made.className = kind;
    parent.append(made);
    return made;
  }
  function draw(parent, tag, about, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const name in about) made.setAttribute(name, about[name]);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }
  function span(seconds) {
    for (const [size, unit] of [[86400, "days"], [3600, "h"], [60, "min"]]) {
      if (seconds >= 2 * size) return `${Math.round(seconds / size)} ${unit}`;
    }
    return `${Math.max(0, Math.round(seconds))} s`;
  }
  const ago = (moment, now) => moment ? `${span(now - moment)} ago` : "never";
  function clock(moment, now) {
    const date = new Date(1000 * moment), day = 86400;
    const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
    return now - moment < day ? time : `${date.toISOString().slice(0, 10)} ${time}`;
  }

  function siteRows(data) {
    const body = at("sites");
    body.replaceChildren();
    for (const site of data.sites) {
      const row = put(body, "tr"), old = site.told && data.at - site.told > 60 ? ` (${ago(site.told, data.at)})` : "";
      put(row, "th", site.site).scope = "row";
      const cells = {
        joined: site.joined,
        connected: site.connected === null ? "not known" : site.connected ? "yes" : "no",
        "last seen": site.connected === null && !site.last_seen ? "not known" : ago(site.last_seen, data.at),
        version: site.version ? site.version + old : "–",
        data: site.data ? site.data + old : "–",
      };
      for (const name in cells) put(row, "td", cells[name]).dataset.name = name;
    }
  }

  /* The certified gap by round, on a logarithmic scale; faults stand where they happened. */
  function gapChart(parent, run) {
    const points = run.gaps.filter(([, gap]) => gap > 0);
    if (points.length < 2) return;
    const [height, left, right, top, bottom] = [200, 48, 12, 10, 30], width = innerWidth < 860 ? 380 : 760;
    const logs = points.map(([, gap]) => Math.log10(gap));
    const high = Math.ceil(Math.max(...logs)), low = Math.min(Math.floor(Math.min(...logs)), high - 1);
    const first = points[0][0], last = points[points.length - 1][0];
    const x = number => left + (width - left - right) * (number - first) / Math.max(last - first, 1);
    const y = log => top + (height - top - bottom) * (high - log) / (high - low);
    const [from, to] = [points[0], points[points.length - 1]].map(([, gap, name]) => `${name}: certified gap ${gap.toExponential(1)}`);
    const text = `${from}; ${to}`;
    const chart = draw(parent, "svg", { viewBox: `0 0 ${width} ${height}`, class: "gap", role: "img", "aria-label": text });
    const step = Math.max(1, Math.ceil((high - low) / 5));
    for (let power = high; power >= low; power -= step) {
      draw(chart, "line", { x1: left, x2: width - right, y1: y(power), y2: y(power), class: "axis" });
      draw(chart, "text", { x: left - 8, y: y(power) + 4, "text-anchor": "end" }, `1e${power}`);
    }
    for (const number of run.faults) {
      if (number >= first && number <= last) draw(chart, "line", { x1: x(number), x2: x(number), y1: top, y2: height - bottom, class: "fault" });
    }
    draw(chart, "polyline", { points: points.map(([number], k) => `${x(number)},${y(logs[k])}`).join(" "), class: "line" });
    draw(chart, "circle", { cx: x(last), cy: y(logs[logs.length - 1]), r: 4 });
    draw(chart, "text", { x: left, y: height - 8 }, points[0][2]);
    draw(chart, "text", { x: width - right, y: height - 8, "text-anchor": "end" }, to);
  }

  function eventList(parent, run, data) {
    if (!run.events.length) return;
    put(parent, "h3", `Events${run.events.length < run.n_events ? `: the last ${run.events.length} of ${run.n_events}` : ""}`);
    const list = put(parent, "ul", null, "events");
    list.tabIndex = 0;
    list.setAttribute("aria-label", "Events, the last one first");
    for (const event of run.events) {
      const line = put(list, "li");
      put(line, "time", clock(event.at, data.at)).dateTime = new Date(1000 * event.at).toISOString();
      const said = put(line, "span");
      put(said, "span", (event.site ? `${event.site}: ` : "") + event.text, event.fault ? "fault" : "");
      if (event.healed !== null) put(said, "span", ` The run went on after ${span(event.healed)}.`, "healed");
    }
  }

  function runCard(parent, run, data) {
    const card = put(parent, "details", null, "run"), wanted = ["running", "waiting"].includes(run.state);
    card.dataset.run = run.run;
    card.open = opened.has(run.run) || (!closed.has(run.run) && (wanted || run === data.runs[0]));
    card.addEventListener("toggle", () => { (card.open ? opened : closed).add(run.run); (card.open ? closed : opened).delete(run.run); });
    const head = put(put(card, "summary"), "h3", run.study);
    head.style.display = "inline";
    put(head, "span", run.state, `badge ${run.state}`);
    const long = run.since && run.state !== "done" ? ` (for ${span(data.at - run.since)})` : "";
    if (run.why) put(card, "p", (run.state === "waiting" ? `Waiting for ${run.why}` : run.why) + long);
    put(card, "p", `Run ${run.run}, begun ${ago(run.begun, data.at)}, with ${run.sites.join(", ")}`, "hint");
    if (run.n_rounds) {
      const gap = run.gap ? `, certified gap ${run.gap.toExponential(1)}` : "";
      put(card, "p", `${run.stage === "setup" ? "Set-up round" : "Round"} ${run.round}${gap}; ${run.n_rounds} rounds in all, ${run.megabytes} MB sent, the last one ${ago(run.last, data.at)}`);
    }
    const spent = Object.entries(run.times).filter(([name, value]) => name !== "total" && value >= 1);
    if (spent.length) put(card, "p", `Time: ${spent.map(([name, value]) => `${data.phases[name] || name} ${span(value)}`).join(", ")}`, "hint");
    gapChart(card, run);
    eventList(card, run, data);
  }

  function show(data) {
    shown = data;
    document.title = `silograph: ${data.title}`;
    at("title").textContent = data.title;
    at("server").textContent = data.server.answers
      ? `The server at ${data.server.address} answers (silograph ${data.server.version}).` : `The server at ${data.server.address} does not answer.`;
    at("doubts").hidden = !data.warnings.length;
    at("warnings").replaceChildren();
    for (const text of data.warnings) put(at("warnings"), "li", text);
    const runs = at("runs"), held = document.activeElement?.closest?.(".run")?.dataset.run;
    const scrolled = new Map([...document.querySelectorAll(".events")].map(list => [list.closest(".run").dataset.run, list.scrollTop]));
    runs.replaceChildren();
    if (!data.runs.length) put(runs, "p", data.at ? "No run yet." : "Not known.", "hint");
    for (const run of data.runs) runCard(runs, run, data);
    for (const card of runs.children) {  // drawn anew, it is left as its reader had it
      const list = card.querySelector?.(".events");
      if (list) list.scrollTop = scrolled.get(card.dataset.run) ?? 0;
      if (held && card.dataset.run === held) card.querySelector("summary").focus({ preventScroll: true });
    }
    if (data.more) put(runs, "p", data.more, "hint");
    siteRows(data);
    judge();
  }

  /* Whether what is shown is how things are */
  function judge() {
    const data = shown, quiet = (performance.now() - changed) / 1000, badge = at("badge");
    // By the clock only until something comes: that of whoever writes may be another one
    const stale = quiet > STALE * data.every || (news < 2 && Date.now() / 1000 - data.made > STALE * data.every);
    const [word, kind] = data.ended ? [data.word, data.word === "done" ? "good" : "none"] : missing ? ["alone", "bad"] : stale ? ["not kept up to date", "bad"]
      : data.server.answers ? ["live", "good"] : ["server away", "bad"];
    if (badge.textContent !== word) { badge.textContent = word; badge.className = `badge ${kind}`; }
    const of = data.at ? `As of ${new Date(1000 * data.at).toLocaleString("sv", { timeZoneName: "short" })}.` : "";
    at("when").textContent = data.ended ? `${of} ${data.ended}` : missing ? `${of} ${beside} is not beside this page, so it shows how things were then.`
      : stale ? `${of} Nothing has come since. Keep it up to date with: ${data.command}` : `${of} Looked at every ${data.every} s.`;
  }

  globalThis.silographLive = data => {
    missing = false;
    if (shown === null || data.made !== shown.made) { changed = performance.now(); news += 1; show(data); }
  };
  function look() {
    const script = document.createElement("script");
    script.src = `./${encodeURIComponent(beside)}?${Date.now()}`;
    const next = seconds => { script.remove(); judge(); setTimeout(look, 1000 * seconds); };
    script.onload = () => next(shown.every);
    script.onerror = () => { missing = true; next(PATIENCE); };
    document.head.append(script);
  }
  silographLive(JSON.parse(place.textContent));
  look();
  document.documentElement.dataset.ready = "yes";
})();
