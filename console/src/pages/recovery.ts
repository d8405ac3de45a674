// The line plot of drills: where its points lie, and what its axis says.
import type { Drill } from "../api/generated";

/** What the plot measures, in milliseconds. */
export type Measure = "write_pause_ms" | "read_pause_ms";

/** The plot's room, in its own units. */
export const plot = { width: 720, height: 220, left: 64, right: 16, top: 16, bottom: 28 } as const;

/** A drill's place in the plot. */
export interface Point {
  drill: Drill;
  x: number;
  y: number;
}

/** The ends and the steps of the axis of time, in milliseconds: round numbers, of which the last is not below any value. */
export function axis(most: number): number[] {
  const about = Math.max(most, 1) / 4;
  const power = 10 ** Math.floor(Math.log10(about));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= about)!;
  const steps = Math.max(1, Math.ceil(most / step));
  return Array.from({ length: steps + 1 }, (_, i) => i * step);
}

/** All drills from the oldest to the newest, at equal distances: they come in bursts, and a scale of time would hide these. */
export function points(drills: Drill[], measure: Measure, top: number): Point[] {
  const ordered = drills.toSorted((a, b) => a.started_at.localeCompare(b.started_at));
  const wide = plot.width - plot.left - plot.right;
  return ordered.map((drill, i) => ({
    drill,
    x: plot.left + (ordered.length === 1 ? wide / 2 : (i * wide) / (ordered.length - 1)),
    y: height(drill[measure], top),
  }));
}

/** Where a time lies in the plot. */
export function height(ms: number, top: number): number {
  return plot.height - plot.bottom - (Math.min(ms, top) / top) * (plot.height - plot.top - plot.bottom);
}

/** The path of a line through points. */
export function line(list: Point[]): string {
  return list.map((p, i) => `${i === 0 ? "M" : "L"}${p.x.toFixed(1)} ${p.y.toFixed(1)}`).join("");
}

/** What a drill failed, in words. */
export function subject(d: Drill): string {
  switch (d.kind) {
    case "kill-active":
      return `the active of ${d.path}`;
    case "cut":
      return `the lines of ${d.site ?? "a site"}`;
    case "geo-config":
      return "geo-config";
  }
}
