// Runs of experiments beside one another: which rows and columns are the same, and
// how far each figure is from the first run's.
import type { Column, Run, Table } from "../api/generated";

/** How many runs are compared at least and at most. */
export const bounds = { least: 2, most: 5 };

type Cell = string | number | undefined;

/** One figure of each run, in the order in which the runs were chosen. */
export interface ComparedRow {
  row: string;
  column: string;
  cells: Cell[];
}

/** One table as far as two runs at least have it. */
export interface ComparedTable {
  name: string;
  title: string;
  rows: ComparedRow[];
}

/** What a comparison shows. */
export interface Comparison {
  /** What stands in the way of comparing, or bounds what it says. */
  words: string[];
  tables: ComparedTable[];
  figures: { title: string; files: (string | undefined)[] }[];
}

/** Compares runs. Those of different experiments have no figures in common, so that only their words come. */
export function compare(runs: Run[]): Comparison {
  const kinds = [...new Set(runs.map((r) => r.experiment || "an unknown experiment"))];
  const words = runs.flatMap(wordsOf);
  if (kinds.length > 1) {
    words.unshift(`These are runs of different experiments (${kinds.join(", ")}): their figures mean different things and are not compared. Choose runs of one experiment.`);
    return { words, tables: [], figures: [] };
  }
  if (new Set(runs.map((r) => r.short)).size > 1) words.push(`${names(runs.filter((r) => r.short))} had small sizes and few repetitions, the others had not: differences come from that, too.`);
  if (new Set(runs.map((r) => r.topology ?? "")).size > 1) words.push("The runs had different topologies: differences come from that, too.");
  const tables = unique(runs.flatMap((r) => r.tables.map((t) => t.name))).map((name) => compareTable(name, runs, words));
  const titles = unique(runs.flatMap((r) => r.figures.map((f) => f.title)));
  const figures = titles.map((title) => ({ title, files: runs.map((r) => r.figures.find((f) => f.title === title)?.file) }));
  return { words, tables: tables.filter((t) => t.rows.length > 0), figures };
}

function wordsOf(r: Run): string[] {
  const out: string[] = [];
  if (r.state === "void") out.push(`${r.name} is void, and its figures do not count: ${r.reason || "no reason is given"}.`);
  if (r.state === "unfinished") out.push(`${r.name} has not finished: it has no figures yet.`);
  if (r.state === "damaged") out.push(`${r.name} is damaged: ${r.reason || "no reason is given"}.`);
  if (r.cut_short) out.push(`Of ${r.name} not everything is compared: its folder has more.`);
  return out;
}

const unique = <T>(list: T[]): T[] => [...new Set(list)];
const names = (runs: Run[]): string => runs.map((r) => r.name).join(", ");

/** The names of columns, or the keys of rows; those that come again get a number. */
function numbered(list: string[]): string[] {
  const seen = new Map<string, number>();
  return list.map((name) => {
    const n = (seen.get(name) ?? 0) + 1;
    seen.set(name, n);
    return n === 1 ? name : `${name} (${n})`;
  });
}

/** The texts at the beginning of a row name it; where there are none, its first cell does. */
function labels(t: Table): number {
  const isText = (i: number) => t.rows.every((row) => typeof row?.[i] === "string");
  let n = 0;
  while (n < t.columns.length && isText(n)) n++;
  return Math.max(1, n);
}

const nameOf = (c: Column): string => [c.name, c.unit].filter(Boolean).join(", ");

/** A table's cells by the names of row and column. Others' figures, which no run measured, stay out. */
function cellsOf(t: Table): { rows: string[]; columns: string[]; at: Map<string, Cell> } {
  const n = labels(t);
  const rows = numbered(t.rows.map((row) => (row ?? []).slice(0, n).map(String).join(", ")));
  const all = numbered(t.columns.map(nameOf));
  const at = new Map<string, Cell>();
  t.rows.forEach((row, r) =>
    all.forEach((column, i) => {
      const v: unknown = row?.[i];
      if (typeof v === "number" || typeof v === "string") at.set(`${rows[r]}\n${column}`, v);
    }),
  );
  return { rows, columns: all.filter((_, i) => i >= n && !t.columns[i]?.source), at };
}

function compareTable(name: string, runs: Run[], words: string[]): ComparedTable {
  const tables = runs.map((r) => r.tables.find((t) => t.name === name));
  const title = tables.find((t) => t)?.title || name;
  const parts = tables.map((t) => t && cellsOf(t));
  const having = parts.filter((p) => p !== undefined);
  if (having.length < runs.length) words.push(`The table “${title}” is only in ${names(runs.filter((_, i) => tables[i]))}.`);
  const columns = unique(having.flatMap((p) => p.columns));
  const rows = unique(having.flatMap((p) => p.rows));
  const partly = (kind: "rows" | "columns", list: string[]) => {
    const some = list.filter((x) => having.some((p) => !p[kind].includes(x)));
    if (some.length > 0) words.push(`Of the table “${title}” not all runs have the ${kind} ${some.slice(0, 5).join("; ")}${some.length > 5 ? ` and ${some.length - 5} more` : ""}.`);
  };
  partly("rows", rows);
  partly("columns", columns);
  const out = columns.flatMap((column) => rows.map((row): ComparedRow => ({ row, column, cells: parts.map((p) => p?.at.get(`${row}\n${column}`)) })));
  return { name, title, rows: out.filter((x) => x.cells.some((c) => c !== undefined)) };
}

/** How far a figure is from the first one; undefined: one of them is not known, or is a text. */
export function difference(first: Cell, other: Cell): { by: number; percent: number | undefined } | undefined {
  if (typeof first !== "number" || typeof other !== "number") return undefined;
  const by = other - first;
  return { by, percent: first === 0 ? (by === 0 ? 0 : undefined) : (by / Math.abs(first)) * 100 };
}

/** The choice of runs with one put in or taken out; of more than may be compared, it stays as it is. */
export function toggled(chosen: string[], run: string): string[] {
  if (chosen.includes(run)) return chosen.filter((x) => x !== run);
  return chosen.length < bounds.most ? [...chosen, run] : chosen;
}
