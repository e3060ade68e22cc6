// Pure functions of a View: what holds at a step, where a key or a click leads. No document, so node tests them.

/** The value of a list of [step, value] pairs at `step`, and the step from which it holds; undefined before the first. */
export function pairAt(pairs, step) {
  let low = 0;
  let high = pairs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pairs[middle][0] <= step) low = middle + 1;
    else high = middle;
  }
  return low ? pairs[low - 1] : undefined;
}

/** A step kept inside the view; the view must have one. */
export function clamp(step, count) {
  return Math.max(0, Math.min(count - 1, Math.round(step) || 0));
}

/** For each file, for each line: its steps in order. */
export function stepsOfLines(steps) {
  const files = new Map();
  steps.forEach((step, k) => {
    if (!files.has(step.file)) files.set(step.file, new Map());
    const lines = files.get(step.file);
    if (!lines.has(step.line)) lines.set(step.line, []);
    lines.get(step.line).push(k);
  });
  return files;
}

/** The next step of a line after `step`, or its first one again when there is none; -1 for a line that never ran. */
export function nextOf(ofLine, step) {
  if (!ofLine || !ofLine.length) return -1;
  return ofLine.find((k) => k > step) ?? ofLine[0];
}

/** The last step of a line up to `step`, -1 when it has not run yet. */
export function lastOf(ofLine, step) {
  if (!ofLine) return -1;
  let last = -1;
  for (const k of ofLine) {
    if (k > step) break;
    last = k;
  }
  return last;
}

/** The step at which the iteration `by` further (+1, -1) begins; the step itself outside loops and at the ends. */
export function otherIteration(view, step, by) {
  const [loop, iteration] = view.steps[step]?.loop ?? [];
  const starts = view.loops[loop]?.starts ?? [];
  const here = starts.findIndex(([n]) => n === iteration);
  const target = here < 0 ? undefined : starts[here + by];
  return target ? target[1] : step;
}

/** The iteration that comes next where some are jumped over, else 0. */
export function skipped(view, step) {
  const [loop, iteration] = view.steps[step]?.loop ?? [];
  const starts = view.loops[loop]?.starts ?? [];
  const next = starts[starts.findIndex(([n]) => n === iteration) + 1]?.[0] ?? 0;
  return next > iteration + 1 ? next : 0;
}

/** A template with its {words} replaced; what has no value stays, so that a mistake is seen. */
export function fill(template, values) {
  return String(template).replace(/\{(\w+)\}/g, (whole, key) => (key in values ? String(values[key]) : whole));
}

/** Runs of text with the templates in them replaced. */
export function fillRuns(runs, values) {
  return runs.map(([text, style]) => [fill(text, values), style]);
}

/** The text of runs without their styles. */
export function plain(runs) {
  return (runs ?? []).map(([text]) => text).join("");
}

/** Which of `total` cells are covered by [first, count] runs. */
export function covered(cover, total) {
  const seen = new Array(total).fill(false);
  for (const [first, count] of cover) {
    for (let i = Math.max(0, first); i < Math.min(total, first + count); i += 1) seen[i] = true;
  }
  return seen;
}

/** Runs as shares of the strip, [left, width] in percent: what a large storage shows. */
export function shares(cover, total) {
  return cover.map(([first, count]) => [(100 * first) / total, (100 * count) / total]);
}

/**
 * The indices by which a strided tensor reaches one element of its storage.
 *
 * Dimensions are walked from the widest stride to the narrowest; what is left must be reachable by the rest, which
 * prunes all but the overlapping cases. At most `limit` answers (an expanded tensor has many), `work` bounds the search.
 */
export function indicesOf(row, element, limit = 3, work = 4096) {
  const { shape, stride, offset = 0 } = row;
  if (!shape || !stride || shape.includes(0)) return [];
  const order = shape.map((_, i) => i).sort((a, b) => Math.abs(stride[b]) - Math.abs(stride[a]));
  const reach = new Array(order.length + 1).fill(0);
  for (let i = order.length - 1; i >= 0; i -= 1) {
    reach[i] = reach[i + 1] + (shape[order[i]] - 1) * Math.abs(stride[order[i]]);
  }
  const found = [];
  const index = new Array(shape.length).fill(0);
  let left = work;
  const walk = (depth, rest) => {
    if (found.length >= limit || left <= 0) return;
    if (depth === order.length) {
      if (rest === 0) found.push([...index]);
      return;
    }
    const dim = order[depth];
    for (let i = 0; i < shape[dim] && found.length < limit; i += 1) {
      left -= 1;
      if (left <= 0) return;
      const remains = rest - i * stride[dim];
      if (Math.abs(remains) > reach[depth + 1]) continue;
      index[dim] = i;
      walk(depth + 1, remains);
    }
    index[dim] = 0;
  };
  walk(0, element - offset);
  return found;
}

/** "0 + 1·4 + 2·1 = 6": how an index leads to an element, its offset first. */
export function arithmetic(row, index) {
  const { stride, offset = 0 } = row;
  const total = index.reduce((sum, i, dim) => sum + i * stride[dim], offset);
  return [offset, ...index.map((i, dim) => `${i}·${stride[dim]}`)].join(" + ") + ` = ${total}`;
}

/**
 * Where each element of a tensor, in its own order, stands in the strip; null when two stand on one place (expanded)
 * or one outside: then the values are shown as a list of their own.
 */
export function places(row, count, total) {
  const { shape, stride, offset = 0 } = row;
  if (!shape || !stride || shape.reduce((a, b) => a * b, 1) !== count) return null;
  const found = [];
  const index = new Array(shape.length).fill(0);
  for (let n = 0; n < count; n += 1) {
    found.push(index.reduce((sum, i, dim) => sum + i * stride[dim], offset));
    for (let dim = shape.length - 1; dim >= 0; dim -= 1) {
      index[dim] += 1;
      if (index[dim] < shape[dim]) break;
      index[dim] = 0;
    }
  }
  if (new Set(found).size !== count || found.some((p) => p < 0 || p >= total)) return null;
  return found;
}

/** The last backward run up to a step, -1 for none. */
export function runAt(runs, step) {
  let found = -1;
  runs.forEach((run, i) => {
    if (run.step <= step) found = i;
  });
  return found;
}

/** A polyline moved down by `by`. */
export function shifted(points, by) {
  return points.map(([x, y]) => [x, y + by]);
}

/**
 * What stands where after events 0 to `last`: edge -> {texts, now}, and the nodes in which something happens right now.
 * `at` gives a place for each text of the events in order: an edge, -1 - node, or null for what is not in the drawing.
 */
export function textsUpTo(events, at, last) {
  const edges = new Map();
  const nodes = new Set();
  let place = 0;
  for (let e = 0; e <= last; e += 1) {
    for (const text of events[e].texts) {
      const here = at?.[place];
      place += 1;
      if (here === null || here === undefined) continue;
      if (here < 0) {
        if (e === last) nodes.add(-1 - here);
        continue;
      }
      if (!edges.has(here)) edges.set(here, { texts: [], now: false });
      const found = edges.get(here);
      found.texts.push(text);
      found.now = e === last;
    }
  }
  return { edges, nodes };
}

/** The point half way along a polyline. */
export function middle(points) {
  const lengths = points.slice(1).map(([x, y], i) => Math.hypot(x - points[i][0], y - points[i][1]));
  let rest = lengths.reduce((a, b) => a + b, 0) / 2;
  for (let i = 0; i < lengths.length; i += 1) {
    if (rest <= lengths[i]) {
      const t = lengths[i] ? rest / lengths[i] : 0;
      return [0, 1].map((c) => points[i][c] + t * (points[i + 1][c] - points[i][c]));
    }
    rest -= lengths[i];
  }
  return points[0];
}
