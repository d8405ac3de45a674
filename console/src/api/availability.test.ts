import { expect, test } from "vitest";
import { type Availability, assumptions, basis, downtime, given, loss, odds } from "./availability";

const expected = (part: Partial<Availability>): Availability => ({
  level: 3,
  sites: 3,
  downtime_ms: 80_000,
  pauses_ms: 68_000,
  waits_ms: 12_000,
  takeovers: 7,
  lost: 2e-9,
  outdated: 2e-7,
  lost_bytes: 0,
  copied_ms: 6_000_000,
  nodes: 12,
  sites_there: 3,
  slices: 1000,
  assumptions: { takeover_ms: 3700, failed_after_ms: 1_800_000 },
  ...part,
});

test("downtime names its pauses where there are any", () => {
  expect(downtime(expected({}))).toBe("1 min 20 s, 1 min 8 s of it in pauses");
  expect(downtime(expected({ downtime_ms: 10_860_000, pauses_ms: 0 }))).toBe("3 h 1 min");
  expect(downtime(expected({ downtime_ms: 300, pauses_ms: 300 }))).toBe("less than a second");
});

test("a chance is so many years, or times a year", () => {
  expect(odds(0)).toBe("never");
  expect(odds(2.5)).toBe("2.5 times a year");
  expect(odds(0.026)).toBe("once in 38 years");
  expect(odds(2.19e-7)).toBe(`once in ${(4_600_000).toLocaleString()} years`);
  expect(odds(1e-12)).toBe("less than once in a billion years");
});

test("a loss has bytes where they are worth a word", () => {
  expect(loss(expected({ lost: 0.026, lost_bytes: 104 * 2 ** 20 }))).toBe("once in 38 years; 104 MiB in the mean");
  expect(loss(expected({ lost: 2.19e-7, lost_bytes: 0.2 }))).toBe(`once in ${(4_600_000).toLocaleString()} years`);
});

test("assumptions go to the API in its units, and only those that were changed", () => {
  expect(given({})).toEqual({});
  expect(given({ node_outage_ms: 0.5, site_outage_ms: 1.5, node_failures_per_year: 2 })).toEqual({ node_outage_ms: 30_000, site_outage_ms: 5_400_000, node_failures_per_year: 2 });
  expect(new Set(assumptions.map((a) => a.key)).size).toBe(assumptions.length);
});

test("the basis says what else was taken for granted", () => {
  expect(basis(expected({}))).toBe("Of 12 nodes at 3 sites, as far as failures are independent. A takeover takes 3.7 s, new copies begin after 30 min.");
  expect(basis(expected({ nodes: 3, sites_there: 1 }))).toContain("at 1 site,");
});
