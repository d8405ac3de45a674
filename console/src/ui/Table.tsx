import { type ReactNode, useMemo, useState } from "react";

/** One column of a table. */
export interface Column<T> {
  id: string;
  name: string;
  cell: (row: T) => ReactNode;
  /** What the column sorts and exports by; absent: it does not sort. */
  value?: (row: T) => string | number | undefined;
  /** Figures stand at the right. */
  figure?: boolean;
  /** Left out on a phone, where the columns behind it matter more. */
  spare?: boolean;
}

interface TableProps<T> {
  /** What the table lists, for readers of screens. */
  label: string;
  columns: Column<T>[];
  rows: T[];
  rowKey: (row: T) => string;
  /** The column that names the row: the first one unless said. */
  header?: string;
  sort?: { id: string; descending: boolean } | undefined;
  onSort?: (sort: { id: string; descending: boolean }) => void;
}

/** A table that sorts. Unknown values come last in either order. */
export function Table<T>({ label, columns, rows, rowKey, header = columns[0]?.id ?? "", sort: given, onSort }: TableProps<T>) {
  const [own, setOwn] = useState<{ id: string; descending: boolean }>();
  const sort = given ?? own;
  const sorted = useMemo(() => {
    const value = columns.find((c) => c.id === sort?.id)?.value;
    return value ? [...rows].sort((a, b) => order(value(a), value(b), sort?.descending ?? false)) : rows;
  }, [rows, columns, sort]);
  const press = (id: string) => (onSort ?? setOwn)({ id, descending: sort?.id === id ? !sort.descending : false });
  return (
    <div className="overflow-x-auto" role="region" aria-label={label} tabIndex={0}>
      <table className="grid-table" aria-label={label}>
        <thead>
          <tr>
            {columns.map((c) => (
              <th key={c.id} scope="col" className={look(c)} aria-sort={sort?.id === c.id ? (sort.descending ? "descending" : "ascending") : undefined}>
                {c.value ? (
                  <button type="button" onClick={() => press(c.id)} className={`inline-flex min-h-6 items-center gap-1 hover:text-ink ${c.figure ? "flex-row-reverse" : ""}`}>
                    {c.name}
                    <span aria-hidden="true" className={sort?.id === c.id ? "" : "opacity-0"}>
                      {sort?.id === c.id && sort.descending ? "↓" : "↑"}
                    </span>
                  </button>
                ) : (
                  c.name
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted.map((row) => (
            <tr key={rowKey(row)}>
              {columns.map((c) =>
                c.id === header ? (
                  <th key={c.id} scope="row">
                    {c.cell(row)}
                  </th>
                ) : (
                  <td key={c.id} className={look(c)}>
                    {c.cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const look = (c: { figure?: boolean; spare?: boolean }) => `${c.figure ? "num" : ""} ${c.spare ? "max-sm:hidden" : ""}`;

/** Compares two values of a column; undefined comes last. */
export function order(a: string | number | undefined, b: string | number | undefined, descending: boolean): number {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1;
  const c = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
  return descending ? -c : c;
}
