import { expect, test } from "vitest";
import { type Column, csv, order } from "./Table";

test("unknown values come last in both orders", () => {
  expect([3, undefined, 1].sort((a, b) => order(a, b, false))).toEqual([1, 3, undefined]);
  const down = [{ v: 3 }, { v: undefined }, { v: 9 }].sort((a, b) => order(a.v, b.v, true)).map((x) => x.v);
  expect(down).toEqual([9, 3, undefined]);
});

test("CSV quotes what it must, and no cell is a formula", () => {
  const columns: Column<{ n: string }>[] = [{ id: "n", name: "name", cell: () => null, value: (r) => r.n }];
  expect(csv(columns, [{ n: 'a "b", c' }, { n: "=1+1" }])).toBe('name\r\n"a ""b"", c"\r\n\'=1+1');
});
