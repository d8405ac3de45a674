import { expect, test } from "vitest";
import type { Network } from "../api/model";
import { median, siteLinks } from "./derive";
import { matrixOf, valueOf } from "./matrix";

const link = (from: string, to: string, extra: object = {}) => ({ from, from_site: from[0]!, to, to_site: to[0]!, path: "direct", ...extra });
const network = {
  nodes: ["a1", "a2", "b1"].map((id) => ({ id, site: id[0]!, reachable: true })),
  links: [link("a1", "b1", { measured_ms: 10, predicted_ms: 14 }), link("a2", "b1", { measured_ms: 20 }), link("b1", "a1", { path: "" })],
} as unknown as Network;

test("sites show the median of their nodes, each way by itself", () => {
  const m = matrixOf(network, "site");
  expect(m.names).toEqual(["a", "b"]);
  expect(m.cells[0]![1]!.measured).toBe(15);
  expect(m.cells[1]![0]!.measured).toBeUndefined();
  expect(m.cells[1]![0]!.paths).toEqual([]);
});

test("a difference without both numbers is not known, and not zero", () => {
  const m = matrixOf(network, "node");
  expect(valueOf(m.cells[0]![2]!, "difference")).toBe(4);
  expect(valueOf(m.cells[1]![2]!, "difference")).toBeUndefined();
});

test("the median of nothing is not known", () => {
  expect(median([])).toBeUndefined();
  expect(median([3, 1, 2])).toBe(2);
});

test("a link to a silent site is broken", () => {
  const links = siteLinks(network, [
    { name: "a", nodes: ["a1", "a2"], nodes_up: 2 },
    { name: "b", nodes: ["b1"], nodes_up: 0 },
  ]);
  expect(links).toEqual([{ from: "a", to: "b", ms: 15, broken: true }]);
});
