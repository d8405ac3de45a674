import { expect, test } from "vitest";
import { keysOf } from "./notices";

test("a changed slice makes the slices and the overview old, not the users", () => {
  const keys = keysOf("revision", { revision: 4, tables: ["slices"], keys: ["slices/7"], complete: true });
  expect(keys).toContain("slices");
  expect(keys).toContain("overview");
  expect(keys).toContain("what-if");
  expect(keys).not.toContain("users");
});

test("what cannot be told apart makes everything old", () => {
  expect(keysOf("gap", {})).toBe("all");
  expect(keysOf("revision", {})).toBe("all");
  expect(keysOf("revision", { tables: ["of a newer version"] })).toBe("all");
  expect(keysOf("heartbeat", {})).toEqual([]);
});
