// One drawing of a graph as SVG: made once, a step only changes classes and the texts on the way back.
import { attrs, colour, svg } from "./dom.js";
import { fill, middle, shifted, textsUpTo } from "./timeline.js";

const UNIT = 16; // drawing units per em: positions come from Python in units of a 16-pixel letter
const FORTH = -6; // the way of data lies above the middle of an edge, the way of gradients below
const BACK = 9;
let count = 0;

/** {node, show(events, last)}; `open(index)` is called for a fold that was opened. `show` returns the shape to look at. */
export function drawing(graph, hues, name, words, open) {
  const id = `tt-arrow-${(count += 1)}`;
  const folds = graph.nodes.some((one) => one.opens >= 0);
  const root = attrs(svg("svg", { viewBox: `0 0 ${graph.width} ${graph.height}`, role: folds ? "group" : "img" }), { "aria-label": name });
  root.style.width = `${graph.width / UNIT}em`;
  const head = (part, cls) => svg("marker", { id: `${id}-${part}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6,
    markerHeight: 6, orient: "auto-start-reverse", class: cls }, svg("path", { d: "M0 0L8 4L0 8z" }));
  root.append(svg("defs", {}, head("f", "arrow"), head("g", "arrow grad"), head("x", "arrow cut")));
  const points = (list) => list.map((p) => p.join(",")).join(" ");
  const texts = svg("g");
  const edges = graph.edges.map((edge) => {
    root.append(svg("polyline", { class: edge.cut ? "edge cut" : "edge", points: points(shifted(edge.points, edge.cut ? 0 : FORTH)),
      "marker-end": `url(#${id}-${edge.cut ? "x" : "f"})` }));
    const [x, y] = edge.label_at ?? middle(edge.points);
    if (edge.label) texts.append(svg("text", { x, y, class: edge.cut ? "label cut" : "label" }, edge.cut ? `✂ ${edge.label}` : edge.label));
    const back = svg("polyline", { class: "back", points: points(shifted(edge.points, BACK).reverse()), "marker-end": `url(#${id}-g)` });
    const text = svg("text", { x, y: y + 39, class: "label back" });
    root.append(back);
    texts.append(text);
    return { back, text };
  });
  const nodes = graph.nodes.map((one) => nodeOf(one, hues[one.storage] ?? -1, words, open));
  root.append(...nodes, texts);

  return {
    node: root,
    show(events, last) {
      const found = textsUpTo(events, graph.at, last);
      edges.forEach(({ back, text }, i) => {
        const here = found.edges.get(i);
        const now = here?.now && last < events.length - 1 ? " told" : "";
        back.setAttribute("class", here ? `back on${now}` : "back");
        text.setAttribute("class", `label back${now}`);
        text.textContent = here?.texts.join(" + ") ?? "";
      });
      let at = null;
      nodes.forEach((node, i) => {
        const now = found.nodes.has(i) && last < events.length - 1;
        node.classList.toggle("at", now);
        if (now) at = node;
      });
      for (const [i, { now }] of found.edges) if (now && last < events.length - 1) at ??= nodes[graph.edges[i].source];
      return at;
    },
  };
}

function nodeOf(one, hue, words, open) {
  const group = colour(svg("g", { class: `node ${one.kind ?? ""}${hue >= 0 ? " stored" : ""}` }), hue);
  if (one.tip) group.append(svg("title", {}, one.tip));
  const round = one.kind === "operation" ? one.h / 2 : 7;
  const middleX = one.x + one.w / 2;
  const box = (by, cls, rx) => group.append(svg("rect", { class: cls, x: one.x + by, y: one.y + by, width: one.w - 2 * by, height: one.h - 2 * by, rx }));
  if (one.kind === "fold") box(-4, "behind", 9);
  box(0, "front", round);
  if (one.kind === "leaf") box(4, "inner", 4);
  group.append(svg("text", { x: middleX, y: one.y + one.h / 2 + (one.sub ? -3 : 5) }, one.label));
  if (one.sub) group.append(svg("text", { x: middleX, y: one.y + one.h / 2 + 15, class: "sub" }, one.sub));
  if (one.opens >= 0) {
    attrs(group, { tabindex: 0, role: "button", "aria-label": fill(words.opens, { name: `${one.label} ${one.sub ?? ""}` }) });
    group.classList.add("opens");
    group.addEventListener("click", () => open(one.opens));
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      open(one.opens);
    });
  }
  return group;
}
