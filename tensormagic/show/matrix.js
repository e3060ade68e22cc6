// The sharing matrix at a step: who shares memory with whom, and the answer for the pair that was chosen.
import { attrs, colour, el, write } from "./dom.js";
import { fill, fillRuns, pairAt } from "./timeline.js";

const MOST = 60; // rows and columns drawn at once: more is unreadable, and would hang the page
const LONG = 7; // letters of a name that still stands across its column
const FILTER = 12; // from so many names on there is a box to filter them

/** The names that a filter leaves, as indices: those that contain the text, at most MOST. */
export function chosen(names, text) {
  const found = [];
  names.forEach((name, i) => {
    if (!text || name.includes(text)) found.push(i);
  });
  return found.slice(0, MOST);
}

/** The sentence for a pair, and the way from one to the other. */
export function answerOf(matrix, i, j, labels) {
  const key = i <= j ? `${i},${j}` : `${j},${i}`;
  const names = { a: matrix.names[Math.min(i, j)], b: matrix.names[Math.max(i, j)] };
  return [matrix.answers[key] ?? fillRuns(labels.other, names), matrix.way?.[key] ?? []];
}

/** A pair of names worth showing first: two that share memory, rather than two names of one object. */
export function firstPair({ names, glyphs }) {
  const n = names.length;
  for (const dull of ["·=", "·"]) {
    for (let j = n - 1; j > 0; j -= 1) {
      for (let i = 0; i < j; i += 1) if (!dull.includes(glyphs[i * n + j])) return [names[i], names[j]];
    }
  }
  return null;
}

/** Would the table of both be the same? Then only what is said of a pair may differ. */
export function looksTheSame(one, other) {
  return one.glyphs === other.glyphs && String(one.storages) === String(other.storages) && JSON.stringify(one.names) === JSON.stringify(other.names);
}

export function matrixPane(view) {
  const words = view.labels;
  const relation = new Map(words.glyphs);
  const table = attrs(el("table", "mx"), { "aria-label": words.matrix });
  const filter = attrs(el("input", "filter"), { type: "search", placeholder: words.filter, "aria-label": words.filter });
  const count = el("span", "soft");
  const none = el("p", "soft", words.no_matrix);
  const answer = el("p", "answer");
  const way = el("p", "answer way");
  const key = el("dl", "key");
  for (const [glyph, text] of words.glyphs) key.append(el("dt", "", glyph), el("dd", "", text));
  const node = el("div", "sharing", el("div", "mxbox", el("div", "tools", filter, count), el("div", "scroll", table), none),
    el("div", "told", answer, way, key));
  let matrix = null;
  let pair = null;
  let picked = null;

  filter.addEventListener("input", rebuild);
  filter.addEventListener("keydown", (event) => event.stopPropagation());
  table.addEventListener("click", (event) => {
    const cell = event.target.closest("button");
    if (cell) choose(Number(cell.dataset.i), Number(cell.dataset.j));
  });
  table.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const cell = event.target.closest("button");
    if (!move || !event.shiftKey || !cell) return;
    const to = buttonAt(Number(cell.dataset.i) + move[0], Number(cell.dataset.j) + move[1]);
    event.preventDefault();
    event.stopPropagation();
    if (to) {
      choose(Number(to.dataset.i), Number(to.dataset.j));
      to.focus();
    }
  });

  const buttonAt = (i, j) => table.querySelector(`button[data-i="${i}"][data-j="${j}"]`);

  function choose(i, j) {
    picked = [matrix.names[i], matrix.names[j]];
    select();
  }

  /** Marks the chosen pair, or the first that shares while nothing was chosen, and says its answer. */
  function select() {
    pair = picked?.every((name) => matrix.names.includes(name)) ? picked : firstPair(matrix);
    for (const old of table.querySelectorAll(".sel")) {
      old.classList.remove("sel");
      old.setAttribute("aria-pressed", "false");
    }
    if (!pair) {
      write(answer, [[words.choose, "soft"]]);
      way.replaceChildren();
      return;
    }
    const [i, j] = pair.map((name) => matrix.names.indexOf(name));
    for (const cell of [buttonAt(i, j), i === j ? null : buttonAt(j, i)]) {
      cell?.classList.add("sel");
      cell?.setAttribute("aria-pressed", "true");
    }
    const focusable = buttonAt(i, j) ?? table.querySelector("button");
    for (const old of table.querySelectorAll('[tabindex="0"]')) old.tabIndex = -1;
    if (focusable) focusable.tabIndex = 0;
    const [sentence, hops] = answerOf(matrix, i, j, words);
    write(answer, sentence);
    write(way, hops);
  }

  const nameCell = (i, scope) => {
    const cell = attrs(colour(el("th", matrix.storages[i] < 0 ? "gradname" : "", matrix.names[i]), hue(i)), { scope, title: matrix.names[i] });
    const sign = view.storages[matrix.storages[i]]?.name;
    if (scope === "row" && sign) cell.append(el("small", "", ` ${sign}`));
    return cell;
  };
  const hue = (i) => view.storages[matrix.storages[i]]?.colour ?? -1;

  function rebuild() {
    const n = matrix.names.length;
    const shown = chosen(matrix.names, filter.value);
    const head = el("tr", "", el("td", "corner"), ...shown.map((j) => nameCell(j, "col")));
    const rows = shown.map((i) => {
      const tr = el("tr", "", nameCell(i, "row"));
      for (const j of shown) {
        const glyph = matrix.glyphs[i * n + j];
        const same = matrix.storages[i] === matrix.storages[j];
        const cell = attrs(el("button", i === j ? "self" : glyph === "·" ? "apart" : "", i === j ? "" : glyph), {
          type: "button", tabindex: -1, "data-i": i, "data-j": j, "aria-pressed": "false",
          "aria-label": fill(words.pair, { a: matrix.names[i], b: matrix.names[j], relation: relation.get(glyph) ?? glyph }),
        });
        tr.append(same ? colour(el("td", "same", cell), hue(i)) : el("td", "", cell));
      }
      return tr;
    });
    table.replaceChildren(el("thead", "", head), el("tbody", "", ...rows));
    table.classList.toggle("upright", matrix.names.some((name) => name.length > LONG));
    table.hidden = !n;
    none.hidden = n > 0;
    filter.hidden = n < FILTER;
    count.textContent = shown.length < n ? fill(words.shown, { shown: shown.length, total: n }) : "";
    node.classList.toggle("empty", !n);
    if (n) select();
  }

  return {
    node,
    draw(k) {
      const found = pairAt(view.matrix, k)?.[1] ?? { names: [], storages: [], glyphs: "", answers: {} };
      if (found === matrix || (!found.names.length && matrix && !matrix.names.length)) return;
      const table = matrix && looksTheSame(matrix, found);
      matrix = found;
      if (table) select();
      else rebuild();
    },
  };
}
