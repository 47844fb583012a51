/* One drawing of one graph by cytoscape: the same places in every drawing, edges above a threshold, names that do not overlap. */

const SIZE = 480;  // of the drawing, in its own units: about a screen's pixels
const LABEL_PIXELS = 12, MOST_NAMES = 60, MARGIN = 30;
const NODE_SIZE = Math.max(4, 11 - nodeCount / 25), WIDEST = Math.max(2, 6 - nodeCount / 35);

const ruler = document.createElement("canvas").getContext("2d");
ruler.font = `${LABEL_PIXELS}px system-ui, sans-serif`;
const clipped = (name, most = 24) => name.length > most ? `${name.slice(0, most - 1)}…` : name;

class GraphView {
  /* `places` are [x, y] upwards from 0 to 1; `backdrop`, if any, an image with its box in the same units. */
  constructor(container, places, backdrop = null) {
    this.container = container;
    this.places = places;
    const [xs, ys] = [0, 1].map((axis) => places.map((place) => place[axis]));
    this.box = backdrop ? backdrop.box : [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
    this.shown = 0;
    this.drawn = [];
    this.chosen = null;
    this.cy = cytoscape({
      container, layout: { name: "preset" }, style: this.style(), minZoom: 0.05, maxZoom: 12, boxSelectionEnabled: false,
      autoungrabify: true, autounselectify: true, hideEdgesOnViewport: false, textureOnViewport: false, pixelRatio: "auto",
    });
    if (backdrop) this.addBackdrop(backdrop);
    let waiting = 0;
    this.cy.on("viewport", () => {
      cancelAnimationFrame(waiting);
      waiting = requestAnimationFrame(() => this.placeNames());
    });
    // Without Ctrl the wheel scrolls the page, as everywhere else
    container.parentElement.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) event.stopPropagation();
    }, { capture: true, passive: true });
  }

  style() {
    return [
      { selector: "node", style: {
        width: NODE_SIZE, height: NODE_SIZE, "background-color": INK, "border-width": 1, "border-color": "#fff",
        label: "data(label)", color: INK, "text-outline-color": "#fff", "text-outline-width": 2.5, "text-outline-opacity": .9,
        "font-family": "system-ui, sans-serif", "text-valign": "top", "text-margin-y": -2, "text-opacity": 0, "text-events": "no",
        "z-index": 2 } },
      { selector: "node.absent", style: { "background-color": "#fff", "border-color": SOFT, "border-style": "dotted", "border-width": 1.5, color: SOFT } },
      { selector: "edge", style: {
        "curve-style": "haystack", "haystack-radius": 0, width: "data(width)", "line-color": "data(colour)", "line-opacity": .75, "z-index": 1 } },
      { selector: "edge.firm", style: { "line-opacity": .9, "z-index": 2 } },
      { selector: "edge.faint", style: { "line-opacity": .2 } },
      { selector: "edge.own", style: { "line-style": "dashed", "line-dash-pattern": [7, 4] } },
      { selector: "edge.below, edge.unstable", style: { display: "none" } },
      { selector: "node.named", style: { "text-opacity": 1 } },
      { selector: "node.right", style: { "text-valign": "center", "text-halign": "right", "text-margin-x": 2, "text-margin-y": 0 } },
      { selector: "node.bottom", style: { "text-valign": "bottom", "text-margin-y": 2 } },
      { selector: "node.left", style: { "text-valign": "center", "text-halign": "left", "text-margin-x": -2, "text-margin-y": 0 } },
      { selector: "node.faded", style: { opacity: .22, "text-opacity": 0 } },
      { selector: "edge.faded", style: { "line-opacity": .05 } },
      { selector: "node.near", style: { "z-index": 8 } },
      { selector: "node.chosen", style: { width: NODE_SIZE + 6, height: NODE_SIZE + 6, "background-color": "#e09f3e", "border-color": INK, "text-opacity": 1, "font-weight": "bold", "z-index": 9 } },
      { selector: "edge.over", style: { "line-opacity": 1, "underlay-color": "#e09f3e", "underlay-opacity": .5, "underlay-padding": 3 } },
      { selector: ".backdrop", style: {
        shape: "rectangle", width: "data(width)", height: "data(height)", "background-color": "#fff", "background-image": "data(image)",
        "background-fit": "contain", "border-width": 0, "z-index": 0, "z-index-compare": "manual", events: "no", label: "" } },
    ];
  }

  addBackdrop({ image, box: [left, low, right, high] }) {
    this.cy.add({ group: "nodes", classes: "backdrop", data: { id: "backdrop", image, width: (right - left) * SIZE, height: (high - low) * SIZE },
      position: { x: SIZE * (left + right) / 2, y: -SIZE * (low + high) / 2 } });
  }

  /* Draw another graph. Beyond the nodes that stay fluid, only those that the strongest edges touch. */
  draw(graph) {
    this.graph = graph;
    this.drawn = graph.ranked.slice(0, run.drawn);
    const touched = new Set(this.drawn.flatMap((edge) => [graph.rows[edge], graph.cols[edge]]));
    const nodes = run.nodes.map((_, node) => node).filter((node) => nodeCount <= run.fluid || touched.has(node));
    const strength = new Array(nodeCount).fill(0);
    for (const edge of this.drawn) { strength[graph.rows[edge]] += graph.weights[edge]; strength[graph.cols[edge]] += graph.weights[edge]; }
    this.byStrength = nodes.slice().sort((a, b) => strength[b] - strength[a] || a - b);
    this.cy.batch(() => {
      this.cy.remove("edge");
      this.cy.remove("node[^width]");
      this.cy.add(nodes.map((node) => ({ group: "nodes", classes: graph.lacks.has(node) ? "absent" : "", data: { id: `n${node}`, node, label: clipped(run.nodes[node]) },
        position: { x: SIZE * this.places[node][0], y: -SIZE * this.places[node][1] } })));
    });
    this.edges = [];
    this.shown = 0;
  }

  /* The edge as cytoscape wants it. */
  edgeOf(edge) {
    const { graph } = this;
    return { group: "edges", classes: [hasSilos && !isShared(graph, edge) ? "own" : "", this.standing(edge)].join(" "),
      data: { id: `e${edge}`, edge, source: `n${graph.rows[edge]}`, target: `n${graph.cols[edge]}`,
        width: .8 + WIDEST * Math.sqrt(graph.weights[edge] / largest), colour: colourOf(graph, edge) } };
  }

  /* How an edge looks that enough half-samples found, and how one that they did not. */
  standing(edge) {
    if (!this.graph.columns.stability) return "";
    return isStable(this.graph, edge) ? "firm" : state.hide ? "unstable" : "faint";
  }

  /* After the bar was moved, or what is below it hidden; only edges that change are touched. */
  setStable() {
    if (!this.graph.columns.stability) return;
    this.cy.batch(() => this.edges.forEach((one) => {
      const standing = this.standing(one.data("edge"));
      if (!one.hasClass(standing)) one.removeClass("firm faint unstable").addClass(standing);
    }));
  }

  /* How many of the edges drawn are not hidden. */
  get visible() {
    return state.hide ? this.drawn.slice(0, this.shown).filter((edge) => isStable(this.graph, edge)).length : this.shown;
  }

  /* Show the edges from this weight on; only those that come or go are touched, and made when they first come. */
  setThreshold(threshold) {
    const wanted = Math.min(countFrom(this.graph, threshold), this.drawn.length);
    this.cy.batch(() => {
      for (let rank = this.shown; rank < Math.min(wanted, this.edges.length); rank += 1) this.edges[rank].removeClass("below");
      if (wanted > this.edges.length) this.edges.push(...this.cy.add(this.drawn.slice(this.edges.length, wanted).map((edge) => this.edgeOf(edge))).toArray());
      for (let rank = wanted; rank < this.shown; rank += 1) this.edges[rank].addClass("below");
    });
    this.shown = wanted;
  }

  /* Highlight a node and its neighbours among the edges shown; null shows all alike. */
  highlight(node) {
    if (node === null && this.chosen === null) return;
    this.chosen = node;
    this.cy.batch(() => {
      this.cy.elements().removeClass("faded near chosen");
      const chosen = node === null ? null : this.cy.getElementById(`n${node}`);
      if (chosen && chosen.nonempty()) {
        const edges = chosen.connectedEdges().not(".below, .unstable");
        const near = edges.connectedNodes().union(chosen);
        this.cy.elements().not(edges).not(near).not(".backdrop").addClass("faded");
        near.addClass("near");
        chosen.addClass("chosen");
      }
    });
    this.placeNames();
  }

  /* Names of a constant size, the best connected nodes' first, each beside its node where it covers no name and no node. */
  placeNames() {
    const zoom = this.cy.zoom(), pan = this.cy.pan(), taken = [], named = [];
    const width = this.cy.width(), height = this.cy.height(), radius = NODE_SIZE / 2 * zoom;
    const near = this.cy.nodes(".near").map((node) => node.data("node")), among = near.length ? near : this.byStrength;
    const across = among.map((node) => SIZE * this.places[node][0] * zoom + pan.x), down = among.map((node) => -SIZE * this.places[node][1] * zoom + pan.y);
    const meets = (box, other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3];
    const covers = (box, rank) => across.some((x, other) => x > box[0] - radius && x < box[2] + radius && other !== rank && down[other] > box[1] - radius && down[other] < box[3] + radius);
    const free = (box, rank) => box[0] >= 0 && box[1] >= 0 && box[2] <= width && box[3] <= height && !taken.some((other) => meets(box, other)) && !covers(box, rank);
    for (const [rank, node] of among.slice(0, 3 * MOST_NAMES).entries()) {
      if (named.length >= MOST_NAMES) break;
      const x = across[rank], y = down[rank], wide = ruler.measureText(clipped(run.nodes[node])).width + 4, high = LABEL_PIXELS + 3, off = radius + 2;
      const boxes = { top: [x - wide / 2, y - off - high, x + wide / 2, y - off], right: [x + off, y - high / 2, x + off + wide, y + high / 2],
        bottom: [x - wide / 2, y + off, x + wide / 2, y + off + high], left: [x - off - wide, y - high / 2, x - off, y + high / 2] };
      const side = Object.keys(boxes).find((one) => free(boxes[one], rank));
      if (side === undefined) continue;
      taken.push(boxes[side]);
      named.push([node, side]);
    }
    this.cy.batch(() => {
      this.cy.nodes(".named").removeClass("named top right bottom left");
      for (const [node, side] of named) {
        this.cy.getElementById(`n${node}`).addClass(`named ${side}`).style({ "font-size": LABEL_PIXELS / zoom, "text-outline-width": 2 / zoom });
      }
    });
  }

  fit() {
    this.cy.resize();
    const [left, low, right, high] = this.box.map((place) => SIZE * place), width = this.cy.width(), height = this.cy.height();
    const zoom = Math.min((width - 2 * MARGIN) / (right - left || 1), (height - 2 * MARGIN) / (high - low || 1), 4);
    this.cy.viewport({ zoom, pan: { x: width / 2 - zoom * (left + right) / 2, y: height / 2 + zoom * (low + high) / 2 } });
    this.placeNames();
  }
}
