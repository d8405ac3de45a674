import { expect, test } from "vitest";
import { asProblem, problemOf } from "./problem";

test("a problem document keeps its cause, remedy and request", async () => {
  const body = { title: "Conflict", status: 409, detail: "the row changed", code: "conflict", remedy: "read it again", request_id: "r1" };
  const p = await problemOf(new Response(JSON.stringify(body), { status: 409 }));
  expect([p.status, p.message, p.code, p.remedy, p.requestId]).toEqual([409, "the row changed", "conflict", "read it again", "r1"]);
});

test("a proxy's page is a problem, too", async () => {
  const p = await problemOf(new Response("<html>bad gateway", { status: 502 }));
  expect(p.status).toBe(502);
  expect(p.code).toBe("unreachable");
  expect(p.message).not.toContain("html");
});

test("a lost connection has status 0", () => {
  expect(asProblem(new TypeError("fetch failed")).status).toBe(0);
});
