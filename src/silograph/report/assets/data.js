"use strict";
/* The page's data, and what is computed from them. Names of nodes and silos are data: they reach the page as text only. */

const styled = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const RED = styled("red"), BLUE = styled("blue"), INK = styled("ink"), SOFT = styled("soft"), OUTLINE = styled("outline");
const SLIDER_STEPS = 1000;

const byId = (id) => document.getElementById(id);
const run = JSON.parse(byId("data").textContent);
const nodeCount = run.nodes.length;
const main = run.graphs[0];
const others = run.graphs.slice(1);
const hasSilos = run.silos.length > 0;

/* Edges from the strongest on, so that those above a threshold are the first ones. */
for (const graph of run.graphs) {
  graph.ranked = graph.weights.map((_, edge) => edge).sort((a, b) => graph.weights[b] - graph.weights[a] || a - b);
  graph.code = graph.rows.map((row, edge) => row * nodeCount + graph.cols[edge]);
  graph.weightOf = new Map(graph.code.map((code, edge) => [code, graph.weights[edge]]));
  graph.lacks = new Set(graph.absent);
}
const largest = Math.max(0, ...run.graphs.map((graph) => graph.ranked.length ? graph.weights[graph.ranked[0]] : 0));

/* Whether an edge of a silo is one of the consensus; of a run over one table, nothing is shared. */
const isShared = (graph, edge) => main.weightOf.has(graph.code[edge]);
/* The silos that could have an edge, as they have both of its nodes, and those that do. */
const observing = (code) => others.filter((other) => !other.lacks.has(Math.floor(code / nodeCount)) && !other.lacks.has(code % nodeCount));
const having = (code) => others.filter((other) => other.weightOf.has(code));
const colourOf = (graph, edge) => !hasSilos ? SOFT : isShared(graph, edge) ? RED : BLUE;

/* How many edges have at least this weight. */
function countFrom(graph, threshold) {
  let low = 0, high = graph.ranked.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (graph.weights[graph.ranked[middle]] >= threshold) low = middle + 1; else high = middle;
  }
  return low;
}

/* The slider's places grow by squares, as most weights are small; each threshold is the rounded number that is shown. */
const thresholdAt = (step) => Number((largest * (step / SLIDER_STEPS) ** 2).toPrecision(2));
const stepOf = (threshold) => largest > 0 ? Math.round(SLIDER_STEPS * Math.sqrt(threshold / largest)) : 0;

function degreesShown(graph) {
  const degree = new Array(nodeCount).fill(0);
  for (const edge of shownEdges(graph)) {
    degree[graph.rows[edge]] += 1;
    degree[graph.cols[edge]] += 1;
  }
  return degree;
}

/* A node's neighbours by the edges shown, the strongest first. */
function neighboursOf(graph, node) {
  return shownEdges(graph)
    .filter((edge) => graph.rows[edge] === node || graph.cols[edge] === node)
    .map((edge) => ({ node: graph.rows[edge] === node ? graph.cols[edge] : graph.rows[edge], edge, weight: graph.weights[edge] }));
}

/* Three digits for people; in columns, `even` keeps zeros at the end. */
function even(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e-3 && size < 1e5) return value.toPrecision(3);
  const [digits, power] = value.toExponential(1).split("e");
  return `${digits === "1.0" ? "" : `${digits}·`}10${[...String(Number(power))].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]).join("")}`;
}
const short = (value) => /[.]/.test(even(value)) && !/10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]/.test(even(value)) ? String(Number(value.toPrecision(3))) : even(value);

const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

/* All digits, in the form in which the run's own tables have them (that of Python). */
function allDigits(value) {
  const [digits, power] = value.toExponential().split("e");
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16) return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  if (exponent >= 0) {
    const text = String(value);
    return text.includes(".") ? text : `${text}.0`;
  }
  return `${value < 0 ? "-" : ""}0.${"0".repeat(-exponent - 1)}${digits.replace(/[-.]/g, "")}`;
}

/* The same bytes as the run's edges.csv. */
function edgesCsv(graph) {
  const field = (text) => /[",\r\n]/.test(text) || text === "" ? `"${text.replaceAll('"', '""')}"` : text;
  const touched = new Set([...graph.rows, ...graph.cols]);
  const more = Object.values(graph.columns), empty = ",".repeat(more.length);
  const lines = [["source,target,weight", ...Object.keys(graph.columns)].join(",")];
  graph.rows.forEach((row, edge) => {
    const numbers = [graph.weights, ...more].map((values) => allDigits(values[edge]));
    lines.push([field(run.nodes[row]), field(run.nodes[graph.cols[edge]]), ...numbers].join(","));
  });
  run.nodes.forEach((name, node) => { if (!touched.has(node) && !graph.lacks.has(node)) lines.push(`${field(name)},,${empty}`); });
  return lines.join("\r\n") + "\r\n";
}

/* Elements: text goes in as text. */
function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
