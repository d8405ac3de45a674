// Rows as comma-separated values, as RFC 4180 has them.
import type { Column } from "./Table";

type Cell = string | number | undefined;

/** What a spreadsheet takes for the beginning of a formula. Some take wide letters for it, too. */
const formula = /^[=+\-@\t\r\n＝＋－＠]/;

/** A text in quotes where it needs them. Some spreadsheets part lines at semicolons and tabs, too. */
function cell(v: Cell): string {
  const text = typeof v === "string" && formula.test(v) ? `'${v}` : String(v ?? "");
  return /[",;\t\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A table's rows, those columns only that have values. A text that a spreadsheet would run as a formula gets a quote before it. */
export function csv<T>(columns: Column<T>[], rows: T[]): string {
  const used = columns.filter((c) => c.value);
  return [used.map((c) => cell(c.name)), ...rows.map((r) => used.map((c) => cell(c.value!(r))))].map((line) => line.join(",")).join("\r\n");
}

/** The bytes of a file of such text. The mark at its beginning tells Excel that it is UTF-8. */
export function csvFile(text: string): Blob {
  return new Blob(["\uFEFF", text, "\r\n"], { type: "text/csv;charset=utf-8" });
}

/** The name of a file of rows, with the time when it was made. */
export function fileName(of: string, at: Date, ending = "csv"): string {
  const plain = of.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
  return `cartwheel-${plain || "table"}-${at.toISOString().slice(0, 19).replaceAll(":", "")}Z.${ending}`;
}

/** How many rows a download has at most, and by how many requests. */
export const most = { rows: 100_000, requests: 400 };

interface Page<T> {
  items: T[];
  next?: string | undefined;
}

/** Reads page after page, until there is none or a bound is met. isWhole says which. */
export async function readAll<T>(page: (cursor: string) => Promise<Page<T>>, told: (rows: number) => void, limit = most): Promise<{ rows: T[]; isWhole: boolean }> {
  const rows: T[] = [];
  let cursor = "";
  for (let n = 0; n < limit.requests && rows.length < limit.rows; n++) {
    const { items, next } = await page(cursor);
    const room = limit.rows - rows.length;
    rows.push(...items.slice(0, room));
    told(rows.length);
    if (!next) return { rows, isWhole: items.length <= room };
    cursor = next;
  }
  return { rows, isWhole: false };
}
