import { expect, test } from "vitest";
import { drainCommand, pathOf, policyCommand, siteCommand } from "./operate";

test("what is done to nodes and sites is a command, too", () => {
  expect(drainCommand({ kind: "node", id: "12D3" }, "drain", true)).toBe("cartwheel node drain 12D3 --force");
  expect(drainCommand({ kind: "site", name: "tokyo" }, "undrain")).toBe("cartwheel site undrain tokyo");
  expect(pathOf({ kind: "site", name: "a b" })).toBe("/sites/a%20b");
  expect(siteCommand("add", "oslo", "Oslo, Norway")).toBe("cartwheel site add oslo --location 'Oslo, Norway'");
  expect(siteCommand("add", "oslo", "")).toBe("cartwheel site add oslo");
  expect(siteCommand("set", "oslo", "")).toBe("cartwheel site set oslo --location ''");
});

test("a policy's command names only what changes", () => {
  expect(policyCommand(7, { level: 4 })).toBe("cartwheel policy set 7 --level 4");
  expect(policyCommand(7, { sites: 0, home: "paris" })).toBe("cartwheel policy set 7 --sites 0 --home paris");
});
