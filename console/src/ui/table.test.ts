import { expect, test } from "vitest";
import { order } from "./Table";

test("unknown values come last in both orders", () => {
  expect([3, undefined, 1].sort((a, b) => order(a, b, false))).toEqual([1, 3, undefined]);
  const down = [{ v: 3 }, { v: undefined }, { v: 9 }].sort((a, b) => order(a.v, b.v, true)).map((x) => x.v);
  expect(down).toEqual([9, 3, undefined]);
});
