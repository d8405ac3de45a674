import { expect, test } from "vitest";
import { schedules, snapshots } from "../mock/cluster";
import { createCommand, deleteCommand, keepProblem, nameProblem, parseAge, scheduleCommand, scrubCommand, timesProblem } from "./past";

test("ages are whole numbers with one unit, up to ten years", () => {
  expect(["15m", "12h", "30d", "8w"].map(parseAge)).toEqual([900_000, 43_200_000, 2_592_000_000, 4_838_400_000]);
  for (const text of ["", "0h", "1", "h", "1.5h", "-1h", "1h30m", "1y", "3651d"]) expect(parseAge(text), text).toBeUndefined();
  expect(parseAge("3650d")).toBe(315_360_000_000);
  expect([keepProblem(""), keepProblem("30d")]).toEqual([undefined, undefined]);
  expect(keepProblem("30 days")).toContain("12h, 30d or 8w");
});

test("a name is checked before it is sent", () => {
  const problem = (name: string) => nameProblem(name, snapshots, schedules);
  expect(problem("before-upgrade_2.1")).toBeUndefined();
  expect(problem("")).toBe("write a name");
  for (const name of ["-1h", ".hidden", "a/b", "a b", "naïve", "2026-01-15T10:00"]) expect(problem(name), name).toContain("letters, digits");
  for (const name of ["2026-01-15", "2026-01-15T10.00", "2026-01-15T10.00.30"]) expect(problem(name), name).toContain("means a time");
  expect(problem("2026-01-15-evening")).toBeUndefined();
  expect(problem(snapshots[0]!.name)).toBe(`${snapshots[0]!.name} is a snapshot already`);
  expect(problem("hourly")).toBe("hourly is a schedule already");
});

test("a schedule keeps each at least until the next, and all have room", () => {
  expect(timesProblem("1h", "48h", schedules)).toBeUndefined();
  expect(timesProblem("90s", "48h", [])).toContain("whole minutes");
  expect(timesProblem("", "48h", [])).toContain("whole minutes");
  expect(timesProblem("1h", "", [])).toContain("48h, 30d or 8w");
  expect(timesProblem("1d", "23h", [])).toContain("until the next one");
  expect(timesProblem("1m", "224m", [])).toContain("225 snapshots, and there is room for 224");
  expect(timesProblem("1m", "223m", [])).toBeUndefined();
  expect(timesProblem("1m", "223m", schedules)).toContain("there is room for 144");
});

test("what is done to snapshots is a command, too", () => {
  expect(createCommand("nightly", "30d")).toBe("cartwheel snapshot create nightly --keep 30d");
  expect(createCommand("nightly", "")).toBe("cartwheel snapshot create nightly");
  expect(deleteCommand("nightly")).toBe("cartwheel snapshot delete nightly");
  expect(scheduleCommand("hourly", "1h", "48h")).toBe("cartwheel snapshot schedule hourly --every 1h --keep 48h");
  expect(scrubCommand("12D3")).toBe("cartwheel scrub 12D3");
});
