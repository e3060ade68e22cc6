// Graph and gradients: data from left to right, and how gradients came back over the same edges, event by event.
import { attrs, button, colour, el, svg, write } from "./dom.js";
import { beside, fill, middle, runAt } from "./timeline.js";

const CHIPS = 5; // more backward runs than these are a list to choose from
const UNIT = 16; // drawing units per em: positions come from Python in units of a 16-pixel letter
let count = 0;

export function gradientsPane(view) {
  const words = view.labels;
  const graph = view.gradients;
  const node = el("div", "grads");
  if (!graph?.nodes?.length && !graph?.runs?.length) {
    node.append(el("p", "soft", graph?.note || words.no_gradients));
    return { node, draw() {} };
  }
  const runs = graph.runs ?? [];
  const few = runs.length <= CHIPS;
  const choice = attrs(el(few ? "div" : "select", "runs"), { role: few ? "group" : null, "aria-label": words.run });
  const position = el("span", "pos");
  const said = el("p", "event");
  const walk = el("span", "walk", button("", "◀", () => show(shown - 1), words.event_previous), position,
    button("", "▶", () => show(shown + 1), words.event_next));
  const sums = el("div", "sums");
  const note = el("p", "soft");
  const picture = drawing(graph, view.storages.map((storage) => storage.colour));
  const legend = el("div", "legend");
  for (const run of graph.legend ?? []) legend.append(write(el("span", ""), [run]));
  node.append(el("div", "tools", choice, walk), said, el("div", "scroll", picture.node), legend, sums, note);
  if (graph.plot?.startsWith("data:image/")) {
    node.append(attrs(el("img", "plot"), { src: graph.plot, alt: graph.plot_alt ?? "" }));
  }
  const buttons = runs.map((run, i) => (few ? button("chip", run.label, () => pick(i)) : el("option", "", run.label)));
  choice.append(...buttons);
  choice.addEventListener("change", () => pick(choice.selectedIndex));
  let current = -2; // no run drawn yet
  let latest = -2;
  let shown = -1;

  function pick(i) {
    current = i;
    if (few) buttons.forEach((one, j) => attrs(one, { "aria-pressed": String(i === j) }));
    else choice.selectedIndex = i;
    const run = runs[i];
    picture.run(run);
    walk.hidden = !run?.events.length;
    sums.replaceChildren(...(run?.leaves ?? []).map((leaf) => sumOf(leaf, words)));
    note.textContent = [graph.note, run?.note].filter(Boolean).join(" ");
    show(run ? run.events.length - 1 : -1);
  }

  /** Shows the events up to `e`; the last of them is the one that is told. */
  function show(e) {
    const events = runs[current]?.events ?? [];
    shown = Math.max(-1, Math.min(events.length - 1, e));
    position.textContent = fill(words.event, { n: shown + 1, total: events.length });
    write(said, events[shown]?.say ?? (current < 0 && runs.length ? [[words.not_yet, "soft"]] : []));
    said.hidden = !said.textContent;
    picture.events(shown);
  }

  return {
    node,
    draw(k) {
      const last = runAt(runs, k);
      buttons.forEach((one, i) => (one.disabled = i > last));
      if (last !== latest) pick(last);
      latest = last;
    },
  };
}

/** "x.grad: none + [2, 4] (clone, line 2) = [2, 4]", part by part. */
function sumOf(leaf, words) {
  const terms = [term(leaf.before, words.before, "old")];
  for (const part of leaf.parts) terms.push(el("span", "op", "+"), term(part.text, part.source, "part"));
  terms.push(el("span", "op", "="), term(leaf.after, words.after, "total"));
  const say = write(el("p", "soft"), leaf.say);
  return el("div", "sum", el("div", "terms", el("b", "gradname", leaf.name), ...terms), say);
}

function term(text, source, cls) {
  return el("span", `term ${cls}`, el("code", "", text), el("small", "", source));
}

/** The SVG: everything is made once; a step only changes classes and the texts on the way back. */
function drawing(graph, hues) {
  const id = `tt-arrow-${(count += 1)}`;
  const root = attrs(svg("svg", { viewBox: `0 0 ${graph.width} ${graph.height}`, role: "img" }), { "aria-label": graph.plot_alt });
  root.style.width = `${graph.width / UNIT}em`;
  const head = (name, cls) => svg("marker", { id: `${id}-${name}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6,
    markerHeight: 6, orient: "auto-start-reverse", class: cls }, svg("path", { d: "M0 0L8 4L0 8z" }));
  root.append(svg("defs", {}, head("f", "arrow"), head("g", "arrow grad"), head("x", "arrow cut")));
  const points = (list) => list.map((p) => p.join(",")).join(" ");
  const texts = svg("g");
  const backs = graph.edges.map((edge) => {
    const line = edge.cut ? "edge cut" : "edge";
    root.append(svg("polyline", { class: line, points: points(beside(edge.points, edge.cut ? 0 : -6)),
      "marker-end": `url(#${id}-${edge.cut ? "x" : "f"})` }));
    if (edge.label) {
      const [x, y] = edge.label_at ?? middle(edge.points);
      texts.append(svg("text", { x, y, class: edge.cut ? "label cut" : "label" }, edge.cut ? `✂ ${edge.label}` : edge.label));
    }
    const back = svg("polyline", { class: "back", points: points(beside(edge.points, 9).reverse()), "marker-end": `url(#${id}-g)` });
    // Edges that leave one node aslant are close at their middles: there the text goes towards the node they end in.
    const [x, y] = steep(edge.points) ? nearer(beside(edge.points, 9)) : middle(beside(edge.points, 9));
    const text = svg("text", { x, y: y + 18, class: "label back" });
    root.append(back);
    texts.append(text);
    return { back, text };
  });
  for (const one of graph.nodes) root.append(nodeOf(one, hues[one.storage] ?? -1));
  root.append(texts);
  let events = [];

  return {
    node: root,
    run(run) {
      events = run?.events ?? [];
    },
    events(last) {
      for (const { back, text } of backs) {
        back.setAttribute("class", "back");
        text.textContent = "";
      }
      events.slice(0, last + 1).forEach((event, i) => {
        const edge = backs[event.edge];
        if (!edge) return;
        const now = i === last && last < events.length - 1 ? " told" : "";
        edge.back.setAttribute("class", `back on${now}`);
        edge.text.setAttribute("class", `label back${now}`);
        edge.text.textContent = event.text;
      });
    },
  };
}

const steep = (points) => Math.abs(points[points.length - 1][1] - points[0][1]) > 12;
const nearer = (points) => [0, 1].map((c) => 0.25 * points[0][c] + 0.75 * points[points.length - 1][c]);

function nodeOf(one, hue) {
  const group = colour(svg("g", { class: `node ${one.kind ?? ""}${hue >= 0 ? " stored" : ""}` }), hue);
  if (one.tip) group.append(svg("title", {}, one.tip));
  const round = one.kind === "operation" ? one.h / 2 : 7;
  group.append(svg("rect", { x: one.x, y: one.y, width: one.w, height: one.h, rx: round }));
  if (one.kind === "leaf") group.append(svg("rect", { class: "inner", x: one.x + 4, y: one.y + 4, width: one.w - 8, height: one.h - 8, rx: 4 }));
  group.append(svg("text", { x: one.x + one.w / 2, y: one.y + one.h / 2 + 5 }, one.label));
  return group;
}
