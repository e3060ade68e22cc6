import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { decode } from "../../tensormagic/show/data.js";
import { answerOf, chosen, firstPair, looksTheSame } from "../../tensormagic/show/matrix.js";
import { reach } from "../../tensormagic/show/memory.js";
import { brightness } from "../../tensormagic/show/theme.js";

const labels = { other: [["{a}", "strong"], [" apart from ", ""], ["{b}", "strong"]] };

test("the answer of a pair is one, whichever way it is asked", () => {
  const matrix = { names: ["x", "y", "z"], answers: { "0,1": [["same", ""]] }, way: { "0,1": [["detach", "code"]] } };
  assert.deepEqual(answerOf(matrix, 1, 0, labels), [[["same", ""]], [["detach", "code"]]]);
  assert.deepEqual(answerOf(matrix, 2, 0, labels), [[["x", "strong"], [" apart from ", ""], ["z", "strong"]], []]);
});

test("the pair shown first is one that shares", () => {
  assert.deepEqual(firstPair({ names: ["a", "b", "c"], glyphs: "=·■·=·■·=" }), ["a", "c"]);
  assert.deepEqual(firstPair({ names: ["a", "b", "c"], glyphs: "=·=·=·=·=" }), ["a", "c"]);
  assert.equal(firstPair({ names: ["a", "b"], glyphs: "=··=" }), null);
  assert.equal(firstPair({ names: [], glyphs: "" }), null);
});

test("a table is made anew only where it would look different", () => {
  const one = { names: ["a", "b"], storages: [0, 1], glyphs: "=··=", answers: {} };
  assert.ok(looksTheSame(one, { ...one, answers: { "0,1": [] } }));
  assert.ok(!looksTheSame(one, { ...one, storages: [0, 2] }));
  assert.ok(!looksTheSame(one, { ...one, names: ["a,b"] }));
});

test("a filter leaves what contains it, and never more than can be drawn", () => {
  assert.deepEqual(chosen(["net.w", "x", "net.b"], "net"), [0, 2]);
  assert.equal(chosen(new Array(500).fill("w"), "").length, 60);
});

test("pointing at an element tells every name's index and the way to it", () => {
  const words = { element: "element {element} of {storage}", index: "{name}[{index}]", scalar: "{name}", offset: "offset {offset}" };
  const state = { cells: ["1", "2", "3", "4"], rows: [{ name: "t", shape: [2, 2], stride: [1, 2], offset: 0 }, { name: "s", shape: [], stride: [], offset: 2 }] };
  assert.deepEqual(reach({ name: "S1" }, state, 2, undefined, words),
    ["element 2 of S1  ·  3", "t[0, 1]  ·  offset 0 + 0·1 + 1·2 = 2", "s  ·  offset 2 = 2"]);
  assert.deepEqual(reach({ name: "S1" }, state, 2, "s", words).length, 2);
});

test("data: plain and gzip read back the same", async () => {
  const view = { text: "∇ </script> ✎" };
  assert.deepEqual(await decode(JSON.stringify(view), "plain"), view);
  assert.deepEqual(await decode(`\n${gzipSync(JSON.stringify(view)).toString("base64")}\n`, "gzip"), view);
});

test("brightness of what a browser computes", () => {
  assert.equal(brightness("rgb(255, 255, 255)"), 1);
  assert.equal(brightness("rgba(0, 0, 0, 0)"), undefined);
  assert.ok(brightness("rgb(17, 17, 17)") < 0.1);
});
