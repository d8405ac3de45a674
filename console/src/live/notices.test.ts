import { expect, test } from "vitest";
import { keysOf } from "./notices";

test("a changed slice makes the slices and the overview old, not the users", () => {
  const keys = keysOf("revision", { revision: 4, tables: ["slices"], keys: ["slices/7"], complete: true });
  expect(keys).toContain("slices");
  expect(keys).toContain("overview");
  expect(keys).toContain("what-if");
  expect(keys).not.toContain("users");
});

test("a changed record makes the snapshots and the schedules old", () => {
  const keys = keysOf("revision", { revision: 5, tables: ["records"], keys: ["records/snapshot/nightly"], complete: true });
  expect(keys).toEqual(expect.arrayContaining(["snapshots", "schedules", "accounts"]));
  expect(keys).not.toContain("slices");
  expect(keysOf("audit", {})).toEqual(expect.arrayContaining(["snapshots", "schedules"]));
});

test("what cannot be told apart makes everything old", () => {
  expect(keysOf("gap", {})).toBe("all");
  expect(keysOf("revision", {})).toBe("all");
  expect(keysOf("revision", { tables: ["of a newer version"] })).toBe("all");
  expect(keysOf("heartbeat", {})).toEqual([]);
});
