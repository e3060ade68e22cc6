// Findings and calls: lists whose rows lead to steps.
import { attrs, button, el, write } from "./dom.js";
import { fill } from "./timeline.js";

export function findingsPane(view, go) {
  const words = view.labels;
  const node = el("div", "findings");
  const findings = view.findings ?? [];
  if (!findings.length) node.append(el("p", "soft", words.no_findings));
  for (const finding of findings) {
    const places = (finding.lines ?? []).map(([role, line, step]) => {
      const text = `${fill(words.line, { line })} · ${role}`;
      return step >= 0 ? button("chip", text, () => go(step)) : el("span", "chip", text);
    });
    const card = el("article", `finding ${finding.severity}`,
      el("h4", "", el("span", "glyph", finding.glyph), write(el("span", ""), finding.title)),
      write(el("p", ""), finding.text));
    if (finding.fix) card.append(el("p", "fix", el("b", "", words.fix), " ", finding.fix));
    card.append(el("div", "places", ...places));
    const first = (finding.lines ?? []).find(([, , step]) => step >= 0);
    if (first) {
      card.classList.add("leads");
      card.addEventListener("click", (event) => event.target.closest("button") || go(first[2]));
    }
    node.append(card);
  }
  for (const notice of view.notices ?? []) {
    node.append(el("p", "notice soft", el("b", "", words.notices), ": ", notice));
  }
  return { node, draw() {} };
}

/** The table of calls; its rows are made when it is first looked at. */
export function callsPane(view, go) {
  const words = view.labels;
  const node = el("div", "calls");
  const calls = view.calls ?? [];
  const rows = new Map();
  let lit = [];
  if (!calls.length) node.append(el("p", "soft", words.no_calls));

  function build() {
    const body = el("tbody", "");
    for (const call of calls) {
      const row = el("tr", "", ...call.cells.map((text) => el("td", "", text)));
      row.addEventListener("click", () => go(call.step));
      body.append(row);
      if (!rows.has(call.step)) rows.set(call.step, []);
      rows.get(call.step).push(row);
    }
    const head = el("tr", "", ...words.call_columns.map((text) => attrs(el("th", "", text), { scope: "col" })));
    const table = attrs(el("table", "list"), { "aria-label": words.calls });
    table.append(el("thead", "", head), body);
    node.append(el("div", "scroll", table));
    if (view.calls_total > calls.length) {
      node.append(el("p", "soft", fill(words.shown, { shown: calls.length, total: view.calls_total })));
    }
  }

  return {
    node,
    draw(k) {
      if (!calls.length) return;
      if (!rows.size) build();
      for (const row of lit) row.classList.remove("now");
      lit = rows.get(k) ?? [];
      for (const row of lit) row.classList.add("now");
      const box = node.querySelector(".scroll");
      if (lit.length && box.scrollHeight > box.clientHeight) box.scrollTop = lit[0].offsetTop - box.clientHeight / 3;
    },
  };
}
