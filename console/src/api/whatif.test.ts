import { expect, test } from "vitest";
import { asCommand, type Outcome, verdict } from "./whatif";

const summary = (part: Partial<Outcome["before"]>) => ({ slices: 10, protected: 10, under: 0, waiting: 0, lost: 0, critical: [], ...part });
const outcome = (during: Partial<Outcome["before"]>, after: Partial<Outcome["before"]>): Outcome => ({
  revision: 1,
  before: summary({}),
  during: summary(during),
  after: summary(after),
  sites: [],
  slices: [],
  slices_changed: 0,
  copies: [],
  notes: [],
  freshness: { as_of_at: "2026-01-01T00:00:00Z", unreachable: [], geo_config: { reachable: true, revision: 1 } },
});

test("the worst that happens makes the verdict", () => {
  expect(verdict(outcome({ lost: 2 }, { lost: 2 })).text).toBe("No copy would be left of 2 slices.");
  expect(verdict(outcome({ waiting: 1 }, { waiting: 1 })).tone).toBe("bad");
  expect(verdict(outcome({ under: 4 }, {})).text).toContain("4 slices would have too few copies until");
  expect(verdict(outcome({ under: 4 }, { under: 4 })).text).toContain("for good");
  expect(verdict(outcome({}, {})).tone).toBe("ok");
});

test("a draft is the command that asks the same", () => {
  const command = asCommand(
    [
      { kind: "lose_site", site: "tokyo" },
      { kind: "add_site", site: "oslo", nodes: 2, rtt_ms: { paris: 30, boston: 95 } },
      { kind: "drain_node", node: "QeKx" },
      { kind: "drain_site", site: "boston" },
      { kind: "set_home", slice: 7, site: "rome" },
      { kind: "move_active", slice: 7, site: "paris" },
      { kind: "set_level", slice: 7, level: 4 },
    ],
    { rate_bytes_per_s: 25_000_000, failed_after_ms: 1_800_000 },
  );
  expect(command).toBe("cartwheel what-if --lose-site tokyo --add-site oslo:2:paris=30ms,boston=95ms --drain-node QeKx --drain-site boston --home 7=rome --move 7=paris --level 7=4 --rate 200 --failed-after 30m");
});

test("a name that a shell would read is quoted", () => {
  expect(asCommand([{ kind: "lose_site", site: "a; rm -rf" }], {})).toBe("cartwheel what-if --lose-site 'a; rm -rf'");
});
