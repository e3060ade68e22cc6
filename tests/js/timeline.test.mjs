import assert from "node:assert/strict";
import { test } from "node:test";
import {
  arithmetic, clamp, covered, fill, fillRuns, indicesOf, lastOf, middle, nextOf, otherIteration, pairAt, places,
  plain, runAt, shares, shifted, skipped, stepsOfLines, textsUpTo,
} from "../../tensormagic/show/timeline.js";

test("the pair that holds at a step is the last one not after it", () => {
  const pairs = [[-1, "a"], [2, "b"], [2, "c"], [7, "d"]];
  const slow = (step) => pairs.filter(([from]) => from <= step).at(-1);
  for (let step = -3; step < 12; step += 1) assert.deepEqual(pairAt(pairs, step), slow(step));
  assert.equal(pairAt([], 3), undefined);
});

test("a step is kept inside, and what is no number is the first", () => {
  assert.deepEqual([-4, 0, 3.4, 99, NaN, undefined].map((step) => clamp(step, 5)), [0, 0, 3, 4, 0, 0]);
});

test("a line leads to its next step, and round to its first", () => {
  const steps = [{ file: 0, line: 1 }, { file: 0, line: 2 }, { file: 1, line: 2 }, { file: 0, line: 2 }];
  const lines = stepsOfLines(steps).get(0);
  assert.deepEqual(lines.get(2), [1, 3]);
  assert.deepEqual([0, 1, 3].map((step) => nextOf(lines.get(2), step)), [1, 3, 1]);
  assert.deepEqual([0, 1, 2, 9].map((step) => lastOf(lines.get(2), step)), [-1, 1, 1, 3]);
  assert.equal(nextOf(undefined, 0), -1);
});

test("iterations go on and back, over those that were only counted, and stop at the ends", () => {
  const view = {
    loops: [{ starts: [[0, 1], [1, 3], [9, 5]] }],
    steps: [{}, { loop: [0, 0] }, { loop: [0, 0] }, { loop: [0, 1] }, { loop: [0, 1] }, { loop: [0, 9] }],
  };
  assert.deepEqual([0, 2, 4, 5].map((step) => otherIteration(view, step, 1)), [0, 3, 5, 5]);
  assert.deepEqual([0, 2, 4, 5].map((step) => otherIteration(view, step, -1)), [0, 2, 1, 3]);
  assert.deepEqual([0, 2, 4, 5].map((step) => skipped(view, step)), [0, 0, 9, 0]);
});

test("templates: what has no value stays, and values are not templates", () => {
  assert.equal(fill("{a} and {b} {c}", { a: "{b}", b: 2 }), "{b} and 2 {c}");
  assert.deepEqual(fillRuns([["{a}", "strong"], ["!", ""]], { a: "<b>" }), [["<b>", "strong"], ["!", ""]]);
  assert.equal(plain([["x", "code"], [" y", ""]]), "x y");
  assert.equal(plain(undefined), "");
});

test("coverage in cells and in shares", () => {
  assert.deepEqual(covered([[1, 2], [4, 9]], 6), [false, true, true, false, true, true]);
  assert.deepEqual(shares([[0, 1], [50, 25]], 100), [[0, 1], [50, 25]]);
});

test("indices of an element: the same as trying every index", () => {
  const layouts = [
    { shape: [2, 3], stride: [3, 1], offset: 0 }, { shape: [3, 2], stride: [1, 3], offset: 0 }, { shape: [], stride: [], offset: 4 },
    { shape: [4], stride: [2], offset: 1 }, { shape: [3, 4], stride: [0, 1], offset: 2 }, { shape: [3, 3], stride: [1, 1], offset: 0 },
    { shape: [0, 3], stride: [3, 1], offset: 0 }, { shape: [2, 2, 2], stride: [1, 2, 4], offset: 3 },
  ];
  for (const row of layouts) {
    const all = new Map();
    const walk = (dim, index, at) => {
      if (dim === row.shape.length) return void all.set(at, [...(all.get(at) ?? []), index.join()]);
      for (let i = 0; i < row.shape[dim]; i += 1) walk(dim + 1, [...index, i], at + i * row.stride[dim]);
    };
    walk(0, [], row.offset);
    for (let element = 0; element < 20; element += 1) {
      const found = indicesOf(row, element, 99).map((index) => index.join()).sort();
      assert.deepEqual(found, (all.get(element) ?? []).sort(), JSON.stringify([row, element]));
    }
  }
});

test("the search for indices is bounded", () => {
  const row = { shape: [1e6, 1e6], stride: [0, 0], offset: 0 };
  assert.equal(indicesOf(row, 0).length, 3);
  assert.deepEqual(indicesOf(row, 1), []);
});

test("arithmetic gives the element", () => {
  assert.equal(arithmetic({ stride: [1, 3], offset: 2 }, [2, 1]), "2 + 2·1 + 1·3 = 7");
  assert.equal(arithmetic({ stride: [], offset: 5 }, []), "5 = 5");
});

test("the values of a gradient stand under the elements they belong to", () => {
  assert.deepEqual(places({ shape: [2, 2], stride: [1, 2], offset: 0 }, 4, 4), [0, 2, 1, 3]);
  assert.deepEqual(places({ shape: [2], stride: [2], offset: 1 }, 2, 4), [1, 3]);
  assert.equal(places({ shape: [2], stride: [0] }, 2, 4), null);
  assert.equal(places({ shape: [2], stride: [9] }, 2, 4), null);
  assert.equal(places({ shape: [3], stride: [1] }, 2, 4), null);
  assert.equal(places({}, 2, 4), null);
});

test("the backward run of a step is the last up to it", () => {
  assert.deepEqual([1, 2, 5, 9].map((step) => runAt([{ step: 2 }, { step: 6 }], step)), [-1, 0, 0, 1]);
});

test("what gradients stand where after some events", () => {
  const events = [{ texts: ["1"] }, { texts: ["a", "b"] }, { texts: ["c", "d"] }];
  const at = [-3, 0, 1, 1, null];
  assert.deepEqual(textsUpTo(events, at, -1), { edges: new Map(), nodes: new Set() });
  assert.deepEqual(textsUpTo(events, at, 0), { edges: new Map(), nodes: new Set([2]) });
  const last = textsUpTo(events, at, 2);
  assert.deepEqual([...last.edges], [[0, { texts: ["a"], now: false }], [1, { texts: ["b", "c"], now: true }]]);
});

test("polylines: shifted goes down, middle is half way", () => {
  assert.deepEqual(shifted([[0, 0], [10, 0]], 5), [[0, 5], [10, 5]]);
  assert.deepEqual(middle([[0, 0], [10, 0], [10, 10]]), [10, 0]);
  assert.deepEqual(middle([[3, 3], [3, 3]]), [3, 3]);
});
