// The memory pane: a strip per storage, what the step changed in it, and a row per name that covers part of it.
import { colour, el } from "./dom.js";
import { arithmetic, covered, fill, indicesOf, pairAt, places, shares } from "./timeline.js";

const STRIP = 64; // more elements than this are shown as position, not one by one
const LETTERS = 30; // longer strips take the whole width, and what made a name stands below its row
const CELLS = 240; // the strip of a large storage has so many places; both as in view_memory.py

/** A pane that redraws only the storages whose state changed. */
export function memoryPane(view) {
  const words = view.labels;
  const node = el("div", "mem");
  const empty = el("p", "soft", words.no_tensors);
  const tip = el("div", "tip");
  tip.hidden = true;
  node.append(empty, tip);
  const drawn = view.storages.map(() => ({ block: null, state: null, fresh: false }));

  node.addEventListener("pointerover", (event) => point(event.target.closest?.("[data-e]")));
  node.addEventListener("pointerleave", () => point(null));

  function point(cell) {
    for (const lit of node.querySelectorAll(".lit")) lit.classList.remove("lit");
    tip.hidden = true;
    const block = cell?.closest(".st");
    if (!block) return;
    const index = Number(block.dataset.storage);
    const element = Number(cell.dataset.e);
    const lines = reach(view.storages[index], drawn[index].state, element, cell.dataset.name, words);
    if (!lines.length) return;
    for (const same of block.querySelectorAll(`[data-e="${element}"]`)) same.classList.add("lit");
    tip.replaceChildren(...lines.map((line) => el("div", "", line)));
    tip.hidden = false;
    const here = cell.getBoundingClientRect();
    const pane = node.getBoundingClientRect();
    const left = Math.min(here.left - pane.left, pane.width - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(4, left) + node.scrollLeft}px`;
    tip.style.top = `${here.bottom - pane.top + node.scrollTop + 8}px`;
  }

  return {
    node,
    draw(k) {
      let any = false;
      let last = empty;
      let written = null;
      point(null);
      view.storages.forEach((storage, i) => {
        const held = drawn[i];
        const pair = pairAt(storage.states, k);
        const state = pair && !pair[1].gone ? pair[1] : null;
        const fresh = Boolean(pair && pair[0] === k);
        if (state !== held.state || (state && fresh !== held.fresh)) {
          const earlier = fresh ? pairAt(storage.states, k - 1)?.[1] : undefined;
          const block = state && blockOf(storage, i, state, fresh ? { earlier } : null, words);
          const across = held.block?.querySelector(".strip").scrollLeft;
          if (!block) held.block?.remove();
          else if (held.block) held.block.replaceWith(block);
          else last.after(block);
          if (across) block?.querySelector(".strip").scrollTo(across, 0);
          if (block && fresh) written ??= block;
          Object.assign(held, { block, state, fresh });
        }
        if (held.block) {
          last = held.block;
          any = true;
        }
      });
      empty.hidden = any;
      if (written) bringIntoView(node, written);
    },
  };
}

/** Scrolls the pane, never the page, to a storage that the step made or wrote, and its strip to the first change. */
function bringIntoView(pane, block) {
  if (pane.scrollHeight > pane.clientHeight) {
    const top = block.offsetTop;
    const bottom = top + block.offsetHeight;
    if (top < pane.scrollTop || bottom > pane.scrollTop + pane.clientHeight) {
      pane.scrollTop = Math.min(top - 8, Math.max(0, bottom - pane.clientHeight + 8));
    }
  }
  const strip = block.querySelector(".strip");
  const hit = strip.scrollWidth > strip.clientWidth && strip.querySelector(".hit");
  if (!hit) return;
  const [cell, box] = [hit.getBoundingClientRect(), strip.getBoundingClientRect()];
  const names = strip.querySelector(".nm").offsetWidth;
  if (cell.left < box.left + names || cell.right > box.right) strip.scrollLeft += cell.left - box.left - names - 12;
}

/** What stands under the pointer, in words: the element, and for each name its index, offset and arithmetic. */
export function reach(storage, state, element, only, words) {
  const lines = [];
  for (const row of state.rows) {
    if (only && row.name !== only) continue;
    for (const index of indicesOf(row, element)) {
      const name = fill(index.length ? words.index : words.scalar, { name: row.name, index: index.join(", ") });
      lines.push(`${name}  ·  ${fill(words.offset, { offset: arithmetic(row, index) })}`);
    }
  }
  const value = state.cells ? `  ·  ${state.cells[element]}` : "";
  return [fill(words.element, { element, storage: storage.name }) + value, ...lines];
}

function blockOf(storage, index, state, fresh, words) {
  const block = colour(el("section", "st"), storage.colour);
  block.dataset.storage = index;
  const sign = storage.sign && storage.sign !== storage.name ? el("span", "sign", storage.sign) : null;
  const head = el("div", "hd", sign, el("b", "", storage.name), ` · ${state.head}`);
  if (storage.tip) head.title = storage.tip;
  if (state.note) head.append(el("span", "held", state.note));
  block.append(head);
  const total = state.cells?.length ?? state.total ?? 0;
  const grid = el("div", "strip");
  const single = total <= STRIP;
  if (single) {
    const widest = Math.max(1, ...(state.cells ?? []).map((text) => text.length));
    const grads = state.rows.flatMap((row) => row.grad ?? []).map((text) => text.length);
    const width = Math.min(14, Math.max(widest, ...grads, 0));
    grid.style.setProperty("--w", width);
    grid.style.setProperty("--n", total);
    if (total * (width + 1.5) > LETTERS) grid.classList.add("wide");
    if (state.cells) grid.append(el("span", "nm"), valuesOf(state, total, fresh), el("span", "why"));
  } else grid.classList.add("large");
  for (const row of state.rows) {
    grid.append(nameOf(row.name), single ? cellsOf(row, total) : barOf(row), whyOf(row.why));
    if (row.grad || row.grad_name) grid.append(...gradOf(row, single ? total : 0, fresh && gradBefore(fresh.earlier, row)));
  }
  if (!single && !state.rows.length) grid.append(el("span", "nm"), el("div", "bar"), el("span", "why"));
  block.append(grid);
  return block;
}

function nameOf(text) {
  const name = el("span", "nm", text);
  name.title = text;
  return name;
}

function whyOf(text) {
  const why = el("span", "why", text ?? "");
  if (text) why.title = text;
  return why;
}

function valuesOf(state, total, fresh) {
  const changed = new Set(fresh ? (state.changed ?? []) : []);
  const values = el("div", "cells val");
  for (let i = 0; i < total; i += 1) {
    const cell = el("i", changed.has(i) ? "hit" : "", state.cells[i]);
    cell.dataset.e = i;
    values.append(cell);
  }
  return values;
}

function cellsOf(row, total) {
  const cells = el("div", "cells cov");
  covered(row.cover ?? [], total).forEach((seen, i) => {
    const cell = el("i", seen ? "" : "off");
    if (seen) {
      cell.dataset.e = i;
      cell.dataset.name = row.name;
    }
    cells.append(cell);
  });
  return cells;
}

function barOf(row) {
  const bar = el("div", "bar");
  for (const [left, width] of shares(row.cover ?? [], CELLS)) {
    const part = el("i", "");
    part.style.left = `${left}%`;
    part.style.width = `max(2px, ${width}%)`;
    bar.append(part);
  }
  return bar;
}

const gradBefore = (earlier, row) => ({ values: earlier?.rows?.find((other) => other.name === row.name)?.grad });

/** The row of a gradient: each value under the element that it belongs to, where that can be said. */
function gradOf(row, total, changed) {
  const values = row.grad ?? []; // of a large gradient there is only what `why` says
  const at = total ? places(row, values.length, total) : null;
  const cells = el("div", `cells grad${at ? "" : " free"}`);
  values.forEach((text, i) => {
    const hit = changed && changed.values?.[i] !== text;
    const cell = el("i", hit ? "hit" : "", text);
    if (at) cell.style.gridArea = `1 / ${at[i] + 1}`;
    cells.append(cell);
  });
  const name = nameOf(row.grad_name ?? `${row.name}.grad`);
  name.classList.add("gradname");
  return [name, cells, whyOf(row.grad_why)];
}
