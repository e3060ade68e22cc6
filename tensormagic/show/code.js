// The code pane: the lines of the step's file, the mark of each, the sentence of the step under its line.
import { button, el, write } from "./dom.js";
import { fill, lastOf, nextOf, otherIteration, skipped } from "./timeline.js";

/** A pane that shows one file at a time. `go(step)` is called for a line that was chosen. */
export function codePane(view, ofLines, go) {
  const words = view.labels;
  const node = el("div", "code");
  const head = el("div", "head");
  const body = el("div", "lines");
  const say = el("div", "say");
  node.append(head, body);
  const files = new Map();
  let shown = null;
  let before = -1;

  function linesOf(index) {
    if (files.has(index)) return files.get(index);
    const file = view.files[index];
    const rows = file.lines.map((text, i) => {
      const number = file.first + i;
      const mark = el("span", "mark");
      const row = el("div", "ln", el("span", "n", number), mark, el("code", "src", text || " "));
      row.addEventListener("click", () => {
        const step = nextOf(ofLines.get(index)?.get(number), before);
        if (step >= 0) go(step);
      });
      if (ofLines.get(index)?.has(number)) row.classList.add("ran");
      return { row, mark, number, kind: null };
    });
    files.set(index, rows);
    return rows;
  }

  function mark(line, step) {
    const kind = step.mark ?? "none";
    if (line.kind === kind) return;
    line.kind = kind;
    const [sign, words_] = words.marks[kind] ?? ["", ""];
    line.mark.textContent = sign;
    line.mark.title = words_;
    line.mark.className = `mark m-${kind}`;
  }

  function markAll(index, k) {
    for (const line of linesOf(index)) {
      const steps = ofLines.get(index)?.get(line.number);
      const last = lastOf(steps, k);
      if (steps) mark(line, view.steps[last < 0 ? steps[0] : last]);
      line.row.classList.toggle("todo", steps !== undefined && last < 0);
    }
  }

  function header(step, k) {
    head.replaceChildren();
    const file = view.files[step.file];
    if (view.files.length > 1 || step.frame) {
      head.append(el("span", "where", file.name || words.cell));
      if (step.frame) head.append(" · ", el("code", "", fill(words.frame, { name: step.frame })));
      for (const [callerFile, line] of step.callers ?? []) {
        const at = lastOf(ofLines.get(callerFile)?.get(line), k);
        head.append(" ", button("crumb", fill(words.caller, { line }), () => at >= 0 && go(at)));
      }
    }
    if (step.loop) {
      const [loop, iteration] = step.loop;
      const { label, total } = view.loops[loop];
      const nav = el("span", "loop");
      nav.append(
        button("", "[", () => go(otherIteration(view, before, -1)), words.earlier),
        el("span", "", fill(words.iteration, { label, n: iteration + 1, total })),
        button("", "]", () => go(otherIteration(view, before, 1)), words.later),
      );
      const next = skipped(view, k);
      if (next) nav.append(el("span", "skipped", fill(words.skipped, { n: next - iteration - 1, next: next + 1 })));
      head.append(nav);
    }
    head.hidden = !head.childNodes.length;
  }

  return {
    node,
    draw(k) {
      const step = view.steps[k];
      if (!step) return;
      if (shown !== step.file) {
        body.replaceChildren(...linesOf(step.file).map((line) => line.row));
        shown = step.file;
      }
      markAll(step.file, k);
      const now = body.querySelector(".now");
      now?.classList.remove("now");
      now?.removeAttribute("aria-current");
      for (const row of body.querySelectorAll(".calling")) row.classList.remove("calling");
      const rows = linesOf(step.file);
      const line = rows[step.line - view.files[step.file].first];
      header(step, k);
      write(say, step.say);
      say.className = `say${step.mark === "error" ? " error" : step.warn ? " warn" : ""}`;
      for (const [file, number] of step.callers ?? []) {
        if (file === step.file) rows[number - view.files[file].first]?.row.classList.add("calling");
      }
      if (line) {
        line.row.classList.add("now");
        line.row.setAttribute("aria-current", "step");
        line.row.after(say);
        keepInView(body, line.row, say);
      } else body.append(say);
      say.hidden = !say.textContent;
      before = k;
    },
  };
}

/** Scrolls the pane, never the page, so that the line and its sentence are seen. */
function keepInView(pane, line, say) {
  if (pane.scrollHeight <= pane.clientHeight) return;
  const top = line.offsetTop; // the pane is positioned, so this counts from its top
  const bottom = Math.max(top + line.offsetHeight, say.offsetTop + say.offsetHeight);
  if (top < pane.scrollTop) pane.scrollTop = Math.max(0, top - line.offsetHeight);
  else if (bottom > pane.scrollTop + pane.clientHeight) pane.scrollTop = Math.min(top, bottom - pane.clientHeight + line.offsetHeight);
}
