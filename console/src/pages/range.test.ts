import { expect, test } from "vitest";
import { activitySchema, asQuery, goesOn, isNarrowed, ofField, toField } from "./range";

const now = Date.parse("2026-01-15T12:00:00Z");

test("a range that ends now begins its length ago, and leaves a from of before", () => {
  expect(asQuery({ range: "15m", who: "ann", from: "2020-01-01T00:00:00Z" }, now)).toEqual({ who: "ann", from: "2026-01-15T11:45:00.000Z" });
  expect(asQuery({ range: "7d" }, now).from).toBe("2026-01-08T12:00:00.000Z");
  expect(asQuery({ range: "custom", from: "2020-01-01T00:00:00Z" }, now)).toEqual({ from: "2020-01-01T00:00:00Z" });
  expect(asQuery({}, now)).toEqual({});
});

test("what the address has wrong falls away, the rest stays", () => {
  const bad = { who: "ann", action: "a".repeat(65), range: "1y", from: "yesterday", to: "2026-01-15T13:00:00+01:00" };
  expect(JSON.parse(JSON.stringify(activitySchema.parse(bad)))).toEqual({ who: "ann", to: "2026-01-15T13:00:00+01:00" });
});

test("an empty range of one's own narrows nothing", () => {
  expect(isNarrowed({ range: "custom" })).toBe(false);
  expect(isNarrowed({ range: "1h" })).toBe(true);
  expect(isNarrowed({ who: "" })).toBe(false);
  expect(isNarrowed({ range: "custom", to: "2026-01-15T12:00:00Z" })).toBe(true);
});

test("a field shows the time in the reader's zone, and gives it back", () => {
  const at = "2026-07-15T12:34:56.000Z";
  expect(ofField(toField(at))).toBe(at);
  expect(toField(at)).toMatch(/^2026-07-1\dT\d\d:\d\d:56$/);
  expect(toField(undefined)).toBe("");
  expect(toField("never")).toBe("");
  expect(ofField("")).toBeUndefined();
});

test("a search goes on until it has a page of rows, and stops to ask", () => {
  expect(goesOn(0, 1, 1)).toBe(true);
  expect(goesOn(99, 4, 1)).toBe(true);
  expect(goesOn(100, 1, 1)).toBe(false);
  expect(goesOn(0, 5, 1)).toBe(false);
  expect(goesOn(0, 5, 2)).toBe(true);
});
