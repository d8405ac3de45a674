import { expect, test } from "vitest";
import type { Drill } from "../api/generated";
import { drills } from "../mock/cluster";
import { axis, height, line, plot, points, subject } from "./recovery";

test("the axis has round steps, and room for the longest pause", () => {
  expect(axis(0)).toEqual([0, 0.5]);
  expect(axis(3870)).toEqual([0, 1000, 2000, 3000, 4000]);
  expect(axis(4000)).toEqual([0, 1000, 2000, 3000, 4000]);
  expect(axis(4001)).toEqual([0, 2000, 4000, 6000]);
  for (const most of [1, 7, 99, 1234, 56_789, 300_000]) {
    const steps = axis(most);
    expect(steps.at(-1)).toBeGreaterThanOrEqual(most);
    expect(steps.length).toBeLessThanOrEqual(6);
  }
});

test("points go from the oldest drill to the newest, over the whole width", () => {
  const list = points(drills, "write_pause_ms", 8000);
  expect(list.map((p) => p.drill.started_at)).toEqual(drills.map((d) => d.started_at).toSorted());
  expect(list[0]!.x).toBe(plot.left);
  expect(list.at(-1)!.x).toBe(plot.width - plot.right);
  expect(points(drills.slice(0, 1), "read_pause_ms", 8000)[0]!.x).toBe((plot.left + plot.width - plot.right) / 2);
  expect(points([], "read_pause_ms", 8000)).toEqual([]);
});

test("a longer pause is higher, and none leaves the plot", () => {
  expect(height(0, 8000)).toBe(plot.height - plot.bottom);
  expect(height(8000, 8000)).toBe(plot.top);
  expect(height(9000, 8000)).toBe(plot.top);
  expect(line(points(drills.slice(0, 2), "write_pause_ms", 8000))).toMatch(/^M[\d.]+ [\d.]+L[\d.]+ [\d.]+$/);
});

test("a drill says what it failed", () => {
  const of = (part: Partial<Drill>) => subject({ ...drills[0]!, ...part });
  expect(of({ kind: "kill-active", path: "/reports" })).toBe("the active of /reports");
  expect(of({ kind: "cut", site: "oslo" })).toBe("the lines of oslo");
  expect(of({ kind: "geo-config" })).toBe("geo-config");
});
