import { readFileSync } from "node:fs";
import { expect, type Page, test } from "@playwright/test";
import { sites } from "../cluster";
import { signIn } from "./people";

/** Says a hundred times and more where a site is, and in the end what was said before. */
async function many(page: Page): Promise<void> {
  const session = (await (await page.request.get("/api/v1/session")).json()) as { csrf: string };
  const site = (await (await page.request.get("/api/v1/sites/boston")).json()) as { location?: string };
  for (let i = 0; i < 120; i++) {
    const location = i % 2 ? (site.location ?? "") : "=1+1, Boston";
    const answer = await page.request.put("/api/v1/sites/boston", { data: { location }, headers: { "X-Cartwheel-CSRF": session.csrf, "Idempotency-Key": `activity-${Date.now()}-${i}` } });
    expect(answer.status(), await answer.text()).toBeLessThan(300);
  }
}

test("a filter finds the oldest change of the log, and a range of time leaves it out", async ({ page }) => {
  await signIn(page, "administrator");
  await many(page);
  await page.goto("/activity");
  const rows = page.getByRole("list", { name: "Changes" }).getByRole("listitem");
  await expect(page.getByRole("button", { name: "Older ones" })).toBeVisible();
  await expect(rows).toHaveCount(100);
  await expect(rows.filter({ hasText: "cluster.found" })).toHaveCount(0);

  await page.getByRole("textbox", { name: "Action" }).fill("cluster.");
  await expect(rows).toHaveCount(1);
  await expect(rows).toContainText("cluster.found");
  await expect(page).toHaveURL(/action=cluster\./);
  await page.reload();
  await expect(rows).toContainText("cluster.found");
  await page.getByRole("combobox", { name: "Time" }).selectOption("the last hour");
  await expect(rows).toContainText("cluster.found");
  await page.getByRole("combobox", { name: "Time" }).selectOption("from and to…");
  await page.getByLabel("From", { exact: true }).fill("2999-01-01T00:00:00");
  await expect(page.getByText("No change matches")).toBeVisible();
  await page.getByLabel("To", { exact: true }).fill("2998-01-01T00:00:00");
  await expect(page.getByRole("alert")).toContainText("name an earlier from or a later to");
  await page.getByRole("button", { name: "Clear", exact: true }).click();
  await expect(rows).toHaveCount(100);
  await expect(page.getByRole("textbox", { name: "Action" })).toHaveValue("");
  await page.getByRole("textbox", { name: "Object" }).fill("boston");
  await expect(rows.filter({ hasNotText: "boston" })).toHaveCount(0);
});

test("all changes come as one file, in which none is a formula", async ({ page }) => {
  await signIn(page, "viewer");
  await page.goto("/activity");
  const awaited = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download CSV" }).click();
  const file = await awaited;
  expect(file.suggestedFilename()).toMatch(/^cartwheel-activity-[\dT-]+Z\.csv$/);
  const text = readFileSync(await file.path(), "utf8");
  const lines = text.trimEnd().split("\r\n");
  expect(lines[0]).toBe("\uFEFFnumber,at,who,action,subject,detail");
  // Records are numbered from 1 without gaps: the file has each of them.
  expect(lines.length - 1).toBe(Number(lines[1]?.split(",")[0]));
  expect(lines.at(-1)).toMatch(/^1,.*cluster\.found/);
  expect(lines.length).toBeGreaterThan(120);
  expect(text).toContain("=1+1, Boston");
  expect(text).not.toMatch(/(^|,|\n)"?[=+@-]/);
  await expect(page.getByRole("status", { name: "Download" })).toHaveText(/^\d+ rows$/);
});

test("the slices come as a file with those that the filters leave", async ({ page }) => {
  await signIn(page, "viewer");
  await page.goto("/slices?q=1");
  const awaited = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download CSV" }).click();
  const lines = readFileSync(await (await awaited).path(), "utf8").trimEnd().split("\r\n");
  expect(lines.length).toBeGreaterThan(1);
  for (const line of lines.slice(1)) expect(line).toMatch(/^1/);
});

test("the coordinates come as JSON, as the API has them", async ({ page }) => {
  await signIn(page, "viewer");
  await page.goto("/network?tab=coordinates");
  const awaited = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download JSON" }).click();
  const file = await awaited;
  expect(file.suggestedFilename()).toMatch(/^cartwheel-coordinates-[\dT-]+Z\.json$/);
  const nodes = JSON.parse(readFileSync(await file.path(), "utf8")) as { site: string; coordinate: { vector_ms: number[]; height_ms: number; error: number } }[];
  expect(nodes.map((n) => n.site).sort()).toEqual([...sites].sort());
  for (const n of nodes) expect(n.coordinate.vector_ms.length).toBeGreaterThan(1);
});
