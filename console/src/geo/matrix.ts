// The matrix of round trips, by node or collapsed by site.
import type { Network } from "../api/model";
import { median } from "./derive";

/** Which number a cell shows. */
export type Mode = "measured" | "predicted" | "difference";

/** The way from one to another, in milliseconds; undefined: not known. */
export interface Cell {
  from: string;
  to: string;
  measured: number | undefined;
  predicted: number | undefined;
  least: number | undefined;
  age: number | undefined;
  /** The kinds of connection that there are; none: there is no connection. */
  paths: string[];
  /** Whether the answer says anything of this way. */
  known: boolean;
}

/** The matrix: rows from, columns to. */
export function matrixOf(network: Network, by: "site" | "node"): { names: string[]; cells: Cell[][] } {
  const names = by === "site" ? [...new Set(network.nodes.map((n) => n.site))].sort() : network.nodes.map((n) => n.id);
  const groups = new Map<string, Network["links"]>();
  for (const l of network.links) {
    if (l.from === l.to) continue;
    const key = by === "site" ? `${l.from_site}\n${l.to_site}` : `${l.from}\n${l.to}`;
    groups.set(key, [...(groups.get(key) ?? []), l]);
  }
  const cells = names.map((from) =>
    names.map((to): Cell => {
      const links = groups.get(`${from}\n${to}`) ?? [];
      const ages = links.flatMap((l) => l.age_ms ?? []);
      return {
        from,
        to,
        measured: median(links.flatMap((l) => l.measured_ms ?? [])),
        predicted: median(links.flatMap((l) => l.predicted_ms ?? [])),
        least: min(links.flatMap((l) => l.least_ms ?? [])),
        age: min(ages),
        paths: [...new Set(links.map((l) => (l.path.startsWith("via ") ? "relayed" : l.path)).filter(Boolean))],
        known: links.length > 0,
      };
    }),
  );
  return { names, cells };
}

function min(values: number[]): number | undefined {
  return values.length > 0 ? Math.min(...values) : undefined;
}

/** A cell's number in a mode; a difference needs both numbers. */
export function valueOf(cell: Cell, mode: Mode): number | undefined {
  if (mode !== "difference") return cell[mode];
  return cell.measured === undefined || cell.predicted === undefined ? undefined : cell.predicted - cell.measured;
}
