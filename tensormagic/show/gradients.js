// Gradients: data from left to right, and how gradients came back over the same edges, node by node.
import { attrs, button, el, write } from "./dom.js";
import { drawing } from "./graph.js";
import { fill, runAt } from "./timeline.js";

const CHIPS = 5; // more backward runs than these are a list to choose from

export function gradientsPane(view) {
  const words = view.labels;
  const all = view.gradients;
  const node = el("div", "grads");
  if (!all?.runs?.length) {
    node.append(el("p", "soft", all?.note || words.no_gradients));
    return { node, draw() {} };
  }
  const runs = all.runs;
  const few = runs.length <= CHIPS;
  const choice = attrs(el(few ? "div" : "select", "runs"), { role: few ? "group" : null, "aria-label": words.run });
  const position = el("span", "pos");
  const said = attrs(el("p", "event"), { "aria-live": "polite" });
  const walk = el("span", "walk", button("", "◀", () => show(shown - 1), words.event_previous), position,
    button("", "▶", () => show(shown + 1), words.event_next));
  const sums = el("div", "sums");
  const note = el("p", "soft");
  const crumbs = el("div", "crumbs");
  const box = el("div", "scroll");
  const legend = el("div", "legend");
  for (const run of all.legend ?? []) legend.append(write(el("span", ""), [run]));
  node.append(el("div", "tools", choice, walk), said, crumbs, box, legend, sums, note);
  const buttons = runs.map((run, i) => (few ? button("chip", run.label, () => pick(i)) : el("option", "", run.label)));
  choice.append(...buttons);
  choice.addEventListener("change", () => pick(choice.selectedIndex));
  const hues = view.storages.map((storage) => storage.colour);
  const pictures = new Map(); // a drawing is made when it is first looked at
  let current = -2; // no run drawn yet
  let latest = -2;
  let shown = -1;
  let opened = []; // the folds that were opened, the whole graph first

  function pick(i) {
    current = i;
    if (few) buttons.forEach((one, j) => attrs(one, { "aria-pressed": String(i === j) }));
    else choice.selectedIndex = i;
    const run = runs[i];
    walk.hidden = !run?.events.length;
    sums.replaceChildren(...(run?.leaves ?? []).map((leaf) => sumOf(leaf, words)));
    note.textContent = [all.note, run?.note].filter(Boolean).join(" ");
    shown = run ? run.events.length - 1 : -1;
    // Before the first backward call its graph is shown without gradients.
    open([(run ?? runs[0]).graph]);
  }

  function open(path) {
    opened = path.filter((index) => all.graphs[index]);
    const index = opened.at(-1);
    crumbs.hidden = opened.length < 2;
    crumbs.replaceChildren(...opened.flatMap((one, depth) => {
      const text = all.graphs[one].label || words.whole;
      const last = depth === opened.length - 1;
      return [depth ? " › " : "", last ? el("b", "", text) : button("crumb", text, () => open(opened.slice(0, depth + 1)))];
    }));
    if (index === undefined) return box.replaceChildren();
    const name = all.graphs[index].label || runs[Math.max(0, current)].label;
    if (!pictures.has(index)) {
      pictures.set(index, drawing(all.graphs[index], hues, fill(words.graph, { name }), words, (inner) => open([...opened, inner])));
    }
    box.replaceChildren(pictures.get(index).node);
    show(shown);
  }

  /** Shows what was sent up to event `e`; the last one is the one that is told. */
  function show(e) {
    const events = runs[current]?.events ?? [];
    shown = Math.max(-1, Math.min(events.length - 1, e));
    position.textContent = fill(words.event, { n: shown + 1, total: events.length });
    write(said, events[shown]?.say ?? (current < 0 ? [[words.not_yet, "soft"]] : []));
    said.hidden = !said.textContent;
    const now = pictures.get(opened.at(-1))?.show(events, shown);
    if (now) bringIntoView(box, now);
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

/** Scrolls the drawing, never the page. */
function bringIntoView(box, shape) {
  const [inner, outer] = [shape.getBoundingClientRect(), box.getBoundingClientRect()];
  if (inner.left < outer.left || inner.right > outer.right) box.scrollLeft += inner.left - outer.left - outer.width / 3;
  if (inner.top < outer.top || inner.bottom > outer.bottom) box.scrollTop += inner.top - outer.top - outer.height / 3;
}

/** "x.grad: none + [2, 4] (clone, line 2) = [2, 4]", part by part. */
function sumOf(leaf, words) {
  const terms = [term(leaf.before, words.before, "old")];
  for (const part of leaf.parts) terms.push(el("span", "op", "+"), term(part.text, part.source, "part"));
  if (leaf.more) terms.push(el("span", "op", "+"), el("span", "soft", leaf.more));
  terms.push(el("span", "op", "="), term(leaf.after, words.after, "total"));
  return el("div", "sum", el("div", "terms", el("b", "gradname", leaf.name), ...terms, write(el("span", "soft"), leaf.say)));
}

function term(text, source, cls) {
  return el("span", `term ${cls}`, el("code", "", text), el("small", "", source));
}
