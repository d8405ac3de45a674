import { expect, test } from "vitest";
import type { Run, Table } from "../api/generated";
import { compare, difference, toggled } from "./comparison";

const table = (rows: Table["rows"], more: Partial<Table> = {}): Table => ({
  name: "accuracy",
  title: "Accuracy",
  columns: [{ name: "case" }, { name: "network" }, { name: "nodes" }, { name: "of 8", unit: "%" }, { name: "of 8", unit: "%" }, { name: "theirs", source: "a paper" }, { name: "to reach" }],
  rows,
  ...more,
});

function run(name: string, more: Partial<Run> = {}): Run {
  return { name, state: "finished", experiment: "coordinates", short: true, sites: [], arguments: [], key_results: [], void_before: [], notes: [], machine: {}, tables: [], figures: [], cut_short: false, ...more } as Run;
}

test("rows are matched by their names, and columns by name and unit, wherever they stand", () => {
  const a = run("a", { tables: [table([["plain", "cities", 60, 10, 1, 5, "at most 3"], ["height", "cities", 60, 20, 2, 5, null]])] });
  const b = run("b", { tables: [table([["height", "cities", 60, 30, 2, 5, null], ["plain", "cities", 70, 5, 1, 5, "at most 4"]])] });
  const { tables, words } = compare([a, b]);
  expect(words).toEqual([]);
  expect(tables).toEqual([
    {
      name: "accuracy",
      title: "Accuracy",
      rows: [
        { row: "plain, cities", column: "nodes", cells: [60, 70] },
        { row: "height, cities", column: "nodes", cells: [60, 60] },
        { row: "plain, cities", column: "of 8, %", cells: [10, 5] },
        { row: "height, cities", column: "of 8, %", cells: [20, 30] },
        { row: "plain, cities", column: "of 8, % (2)", cells: [1, 1] },
        { row: "height, cities", column: "of 8, % (2)", cells: [2, 2] },
        { row: "plain, cities", column: "to reach", cells: ["at most 3", "at most 4"] },
      ],
    },
  ]);
});

test("a table of numbers alone has rows named by their first ones, and rows of one name are told apart", () => {
  const t = (rows: Table["rows"]): Table => ({ name: "t", columns: [{ name: "clients" }, { name: "rate" }], rows });
  const { tables } = compare([run("a", { tables: [t([[1, 10], [1, 11], [2, 20]])] }), run("b", { tables: [t([[1, 12], [1, 13], [2, 24]])] })]);
  expect(tables[0]!.rows.map((r) => [r.row, ...r.cells])).toEqual([["1", 10, 12], ["1 (2)", 11, 13], ["2", 20, 24]]);
});

test("what only some runs have is said, and stays unknown in the others", () => {
  const a = run("a", { tables: [table([["plain", "cities", 60, 10, 1, 5, null], ["drag", "cities", 60, 10, 1, 5, null]]), { name: "cost", title: "Cost", columns: [{ name: "case" }, { name: "CPU" }], rows: [["plain", 3]] }] });
  const b = run("b", { tables: [table([["plain", "cities", 60, 10]], { columns: [{ name: "case" }, { name: "network" }, { name: "nodes" }, { name: "of 8", unit: "s" }] })] });
  const { tables, words } = compare([a, b]);
  expect(words).toEqual([
    "Of the table “Accuracy” not all runs have the rows drag, cities.",
    "Of the table “Accuracy” not all runs have the columns of 8, %; of 8, % (2); to reach; of 8, s.",
    "The table “Cost” is only in a.",
  ]);
  const cells = (column: string, row: string) => tables[0]!.rows.find((r) => r.column === column && r.row === row)?.cells;
  expect(cells("of 8, %", "plain, cities")).toEqual([10, undefined]); // per cent are not seconds
  expect(cells("of 8, s", "plain, cities")).toEqual([undefined, 10]);
  expect(cells("nodes", "drag, cities")).toEqual([60, undefined]);
  expect(tables[1]!.rows).toEqual([{ row: "plain", column: "CPU", cells: [3, undefined] }]);
});

test("runs of different experiments are not compared, and it says why", () => {
  const t = [table([["plain", "cities", 60, 10, 1, 5, null]])];
  const got = compare([run("a", { tables: t }), run("b", { tables: t, experiment: "garage" })]);
  expect(got.tables).toEqual([]);
  expect(got.figures).toEqual([]);
  expect(got.words[0]).toMatch(/different experiments \(coordinates, garage\).*Choose runs of one/);
});

test("runs whose figures count less are named", () => {
  const got = compare([run("a", { state: "void", reason: "the machine was busy" }), run("b", { state: "unfinished", short: false }), run("c", { state: "damaged", reason: "report.json is cut off", topology: "cities" }), run("d", { cut_short: true })]);
  expect(got.words).toEqual([
    "a is void, and its figures do not count: the machine was busy.",
    "b has not finished: it has no figures yet.",
    "c is damaged: report.json is cut off.",
    "Of d not everything is compared: its folder has more.",
    "a, c, d had small sizes and few repetitions, the others had not: differences come from that, too.",
    "The runs had different topologies: differences come from that, too.",
  ]);
});

test("figures of one title stand beside one another", () => {
  const got = compare([run("a", { figures: [{ file: "x.svg", title: "Over time" }] }), run("b", { figures: [{ file: "z.svg", title: "Closest" }, { file: "y.svg", title: "Over time" }] })]);
  expect(got.figures).toEqual([
    { title: "Over time", files: ["x.svg", "y.svg"] },
    { title: "Closest", files: [undefined, "z.svg"] },
  ]);
});

test("the difference is to the first, in its unit and of its size", () => {
  expect(difference(10, 15)).toEqual({ by: 5, percent: 50 });
  expect(difference(-10, -15)).toEqual({ by: -5, percent: -50 });
  expect(difference(0, 3)).toEqual({ by: 3, percent: undefined });
  expect(difference(0, 0)).toEqual({ by: 0, percent: 0 });
  expect(difference("none", 3)).toBeUndefined();
  expect(difference(undefined, 3)).toBeUndefined();
});

test("at most five runs are chosen, in the order in which they were", () => {
  expect(toggled(["b"], "a")).toEqual(["b", "a"]);
  expect(toggled(["b", "a"], "b")).toEqual(["a"]);
  const five = ["a", "b", "c", "d", "e"];
  expect(toggled(five, "f")).toEqual(five);
  expect(toggled(five, "c")).toEqual(["a", "b", "d", "e"]);
});
