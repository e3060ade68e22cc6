// The panel: puts the panes together, owns the current step, and joins the panel of an output to its live model.
import { codePane } from "./code.js";
import { decode } from "./data.js";
import { attrs, button, el, write } from "./dom.js";
import { gradientsPane } from "./gradients.js";
import { callsPane, findingsPane } from "./lists.js";
import { matrixPane } from "./matrix.js";
import { memoryPane } from "./memory.js";
import { colours, css } from "./style.js";
import { followTheme } from "./theme.js";
import { clamp, fill, otherIteration, plain, stepsOfLines } from "./timeline.js";

const SIZES = [11, 13, 15, 17, 20, 24, 28, 32]; // pixels of A- and A+
const PACE = 1000; // milliseconds a step is shown while playing

// Every output carries its own copy of this script; what copies must share lives in one place of the page.
const shared = (globalThis[Symbol.for("tensormagic.panels")] ??= { models: new Map(), panels: new Map(), size: 2 });

/** Draws a view in a shadow root on `host`. Returns {go, step, onstep, unlink, remove}. */
export function mount(host, view, start = view.start) {
  host.setAttribute("data-lm-suppress-shortcuts", "true");
  const shadow = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const words = view.labels;
  const count = view.steps.length;
  const ofLines = stepsOfLines(view.steps);
  for (const storage of view.storages) storage.colour %= colours;
  const panel = { step: -1, moved: false, go, onstep() {}, unlink() {}, remove };
  let timer = 0;

  const play = button("play", "▶", toggle, words.play);
  const slider = attrs(el("input", ""), { type: "range", min: 0, max: Math.max(0, count - 1), step: 1, "aria-label": words.step });
  const position = el("span", "pos");
  const live = attrs(el("div", "unseen"), { "aria-live": "polite", role: "status" });
  const bar = el("div", "bar0", el("b", "", view.title), write(el("span", "sum0"), view.summary),
    el("span", "controls", el("span", "group", sizeButton("A-", -1, words.smaller), sizeButton("A+", 1, words.larger)),
      el("span", "group", button("", "◀", () => go(panel.step - 1), words.previous), play,
        button("", "▶|", () => go(panel.step + 1), words.next)), slider, position));
  const code = codePane(view, ofLines, go);
  const memory = memoryPane(view);
  const main = el("div", "main", code.node, memory.node);
  const tabs = tabsOf(view, go);
  const root = attrs(el("div", "tt", bar, main, tabs.list, tabs.body, live), { tabindex: 0, role: "region", "aria-label": view.title, "aria-description": words.help });
  slider.disabled = !count;
  slider.addEventListener("input", () => go(Number(slider.value)));
  root.addEventListener("keydown", onKey);
  shadow.replaceChildren(el("style", "", css), root);
  resize(0);
  window.addEventListener("resize", fit);
  window.addEventListener("keydown", guard, true);
  const forget = followTheme(host);
  if (count) go(start ?? 0);
  else {
    live.textContent = words.no_steps;
    code.node.append(el("p", "soft", words.no_steps));
  }
  panel.moved = false;

  function go(step) {
    const k = clamp(step, count);
    if (!count || k === panel.step) return;
    panel.step = k;
    panel.moved = true;
    code.draw(k);
    memory.draw(k);
    tabs.draw(k);
    slider.value = k;
    const { line, say } = view.steps[k];
    attrs(slider, { "aria-valuetext": fill(words.position_long, { step: k + 1, steps: count, line }) });
    position.textContent = fill(words.position, { step: k + 1, steps: count });
    live.textContent = plain(say);
    panel.onstep(k);
    // The panel grows with what is shown and never shrinks under the reader's eyes.
    const height = main.offsetHeight;
    if (height > (Number.parseFloat(main.style.minHeight) || 0)) main.style.minHeight = `${height}px`;
  }

  function toggle() {
    if (timer) return stop();
    if (panel.step >= count - 1) go(0);
    timer = setInterval(() => (panel.step < count - 1 && host.isConnected ? go(panel.step + 1) : stop()), PACE);
    play.textContent = "❚❚";
    play.setAttribute("aria-pressed", "true");
  }

  function stop() {
    clearInterval(timer);
    timer = 0;
    play.textContent = "▶";
    play.setAttribute("aria-pressed", "false");
  }

  function sizeButton(text, by, title) {
    const node = button("size", text, () => resize(by));
    node.title = title;
    return node;
  }

  function resize(by) {
    shared.size = Math.max(0, Math.min(SIZES.length - 1, shared.size + by));
    host.style.setProperty("--tt-size", `${SIZES[shared.size]}px`);
    fit();
  }

  function fit() {
    main.style.minHeight = "";
  }

  /** JupyterLab hears keys before the panel does: it is told to leave plain ones alone, and may have those that save or run. */
  function guard(event) {
    if (forNotebook(event)) host.removeAttribute("data-lm-suppress-shortcuts");
    else host.setAttribute("data-lm-suppress-shortcuts", "true");
  }

  function onKey(event) {
    if (forNotebook(event)) return;
    event.stopPropagation();
    const act = {
      ArrowRight: () => go(panel.step + 1),
      ArrowLeft: () => go(panel.step - 1),
      Home: () => go(0),
      End: () => go(count - 1),
      " ": toggle,
      "[": () => go(otherIteration(view, panel.step, -1)),
      "]": () => go(otherIteration(view, panel.step, 1)),
    }[event.key];
    // Space on a button presses that button.
    if (!act || event.shiftKey || (event.key === " " && event.target.closest?.("button"))) return;
    event.preventDefault();
    act();
  }

  function remove() {
    stop();
    forget();
    panel.unlink();
    window.removeEventListener("resize", fit);
    window.removeEventListener("keydown", guard, true);
  }

  return panel;
}

const forNotebook = (event) => event.ctrlKey || event.metaKey || event.altKey || (event.shiftKey && event.key === "Enter");

function tabsOf(view, go) {
  const words = view.labels;
  const counts = { findings: view.findings?.length ?? 0, calls: view.calls_total ?? view.calls?.length ?? 0 };
  const make = { sharing: () => matrixPane(view), gradients: () => gradientsPane(view), findings: () => findingsPane(view, go), calls: () => callsPane(view, go) };
  const list = attrs(el("div", "tabs"), { role: "tablist" });
  const body = attrs(el("div", "view"), { role: "tabpanel", tabindex: -1 });
  const panes = {};
  let open = "sharing";
  let step = -1;
  const heads = Object.keys(make).map((name) => {
    const head = attrs(button("", words[name], () => show(name)), { role: "tab" });
    if (counts[name]) head.append(attrs(el("span", `count ${name}`, counts[name]), { "aria-hidden": "true" }));
    list.append(head);
    return [name, head];
  });

  function show(name) {
    open = name;
    for (const [other, head] of heads) attrs(head, { "aria-selected": String(other === name) });
    body.setAttribute("aria-label", words[name]);
    panes[name] ??= make[name]();
    body.replaceChildren(panes[name].node);
    if (step >= 0) panes[name].draw(step);
  }

  show(open);
  return {
    list,
    body,
    draw(k) {
      step = k;
      panes[open].draw(k);
    },
  };
}

/** Joins a panel and a live model: a step taken here is told to Python, a step set in Python is shown here. */
function link(model, panel) {
  panel.unlink();
  let later = 0;
  panel.onstep = (step) => {
    clearTimeout(later);
    // Quick steps are drawn at once and told once they come to rest.
    later = setTimeout(() => {
      if (model.get("step") === step) return;
      model.set("step", step);
      model.save_changes();
    }, 60);
  };
  const follow = () => panel.go(model.get("step"));
  model.on("change:step", follow);
  // A model may come back long after a page was opened: a reader who has stepped by then stays where they are.
  if (panel.moved) panel.onstep(panel.step);
  else follow();
  panel.unlink = () => {
    clearTimeout(later);
    model.off("change:step", follow);
    Object.assign(panel, { onstep() {}, unlink() {} });
  };
}

/** Draws the panel in every output of that id that shows its picture still. */
export async function mountAll(id) {
  for (const host of document.querySelectorAll(`[data-tensortrace="${id}"]:not([data-live])`)) {
    host.setAttribute("data-live", "");
    const data = host.querySelector("script[data-form]");
    const panel = mount(host, await decode(data.textContent, data.dataset.form));
    if (!shared.panels.has(id)) shared.panels.set(id, new Set());
    shared.panels.get(id).add(panel);
    if (shared.models.has(id)) link(shared.models.get(id), panel);
  }
}

export default {
  mountAll,
  initialize({ model }) {
    const id = model.get("link");
    shared.models.set(id, model);
    for (const panel of shared.panels.get(id) ?? []) link(model, panel);
    // The kernel went: the panels of the output step on by themselves.
    return () => {
      shared.models.delete(id);
      for (const panel of shared.panels.get(id) ?? []) panel.unlink();
    };
  },
  async render({ model, el: node }) {
    const host = el("div", "");
    node.append(host);
    const panel = mount(host, await decode(model.get("data"), model.get("form")), model.get("step"));
    link(model, panel);
    return () => panel.remove();
  },
};
