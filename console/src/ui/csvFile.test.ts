import { expect, test } from "vitest";
import { csv, csvFile, fileName, readAll } from "./csvFile";
import type { Column } from "./Table";

const columns: Column<{ n: string | number | undefined }>[] = [
  { id: "n", name: "name", cell: () => null, value: (r) => r.n },
  { id: "x", name: "drawn only", cell: () => null },
];
const line = (n: string | number | undefined) => csv(columns, [{ n }]).split("\r\n").slice(1).join("\r\n");

test("CSV quotes what it must", () => {
  expect(csv(columns, [{ n: 'a "b", c' }, { n: undefined }])).toBe('name\r\n"a ""b"", c"\r\n');
  expect(line("two\r\nlines")).toBe('"two\r\nlines"');
  expect(line("plain text, with a comma")).toBe('"plain text, with a comma"');
  expect(line("São Paulo")).toBe("São Paulo");
});

test("no cell is a formula, at whichever sign a spreadsheet parts the line", () => {
  for (const n of ["=1+1", "+1", "-1", "@SUM(A1)", "＝1"]) expect(line(n)).toBe(`'${n}`);
  for (const n of ["\t=1", "\r=1", "\n=1"]) expect(line(n)).toBe(`"'${n}"`);
  expect(line('=HYPERLINK("http://x","y")')).toBe(`"'=HYPERLINK(""http://x"",""y"")"`);
  expect(line("a;=1+1")).toBe('"a;=1+1"');
  expect(line("a\t=1+1")).toBe('"a\t=1+1"');
  expect(csv([{ ...columns[0]!, name: "=name" }], [])).toBe("'=name");
});

test("numbers stay numbers, below zero too", () => {
  expect(line(-12.5)).toBe("-12.5");
  expect(line(0)).toBe("0");
});

test("a file begins with the mark of UTF-8 and has a name without signs", async () => {
  const bytes = new Uint8Array(await csvFile("é").arrayBuffer());
  expect([...bytes]).toEqual([0xef, 0xbb, 0xbf, 0xc3, 0xa9, 0x0d, 0x0a]);
  expect(fileName("Nodes of são/paulo", new Date("2026-01-15T12:03:04.5Z"))).toBe("cartwheel-nodes-of-s-o-paulo-2026-01-15T120304Z.csv");
  expect(fileName("…", new Date(0))).toBe("cartwheel-table-1970-01-01T000000Z.csv");
});

/** Pages of three rows, of so many rows in all, some of them empty. */
function pages(total: number) {
  const asked: string[] = [];
  const page = async (cursor: string) => {
    asked.push(cursor);
    const from = Number(cursor);
    const empty = asked.length === 2;
    const items = empty ? [] : Array.from({ length: Math.min(3, total - from) }, (_, i) => from + i);
    const next = from + items.length;
    return { items, next: next < total ? String(next) : undefined };
  };
  return { asked, page };
}

test("all pages are read, each once, and an empty one does not end it", async () => {
  const { page, asked } = pages(8);
  const told: number[] = [];
  expect(await readAll(page, (n) => told.push(n))).toEqual({ rows: [0, 1, 2, 3, 4, 5, 6, 7], isWhole: true });
  expect(asked).toEqual(["", "3", "3", "6"]);
  expect(told).toEqual([3, 3, 6, 8]);
});

test("a bound is told of", async () => {
  expect(await readAll(pages(8).page, () => {}, { rows: 4, requests: 9 })).toEqual({ rows: [0, 1, 2, 3], isWhole: false });
  expect(await readAll(pages(5).page, () => {}, { rows: 4, requests: 9 })).toEqual({ rows: [0, 1, 2, 3], isWhole: false });
  expect(await readAll(pages(8).page, () => {}, { rows: 99, requests: 2 })).toEqual({ rows: [0, 1, 2], isWhole: false });
  expect(await readAll(pages(3).page, () => {}, { rows: 3, requests: 1 })).toEqual({ rows: [0, 1, 2], isWhole: true });
});
