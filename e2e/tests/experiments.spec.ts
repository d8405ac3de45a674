import { AxeBuilder } from "@axe-core/playwright";
import { expect, test } from "@playwright/test";
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { signIn } from "./people";

const testbed = resolve(import.meta.dirname, "..", "..", "bin", "cartwheel-testbed");

test("a run shows its figures and the command that repeats it", async ({ page }) => {
  const folder = process.env["CARTWHEEL_E2E_FOLDER"] ?? "";
  const runs = join(folder, "cartwheel-testbed");
  await signIn(page, "viewer");
  await page.goto("/experiments");
  await expect(page.getByText("No run yet")).toBeVisible();
  try {
    execFileSync(testbed, ["run", "coordinates", "--short", "--set", "live=0"], { cwd: folder });
    mkdirSync(join(runs, "photos"));
    await page.reload();
    await expect(page.getByRole("row", { name: /^photos/ })).toContainText("no folder of a run");
    await page.getByRole("link", { name: /^coordinates-/ }).click();
    await expect(page.getByText("cartwheel-testbed run coordinates --short --set live=0")).toBeVisible();
    await expect(page.getByRole("table").first()).toContainText("plain 2-D");
    const pictures = page.locator("main img");
    await expect(pictures).toHaveCount(3);
    for (const picture of await pictures.all()) await expect.poll(() => picture.evaluate((i: HTMLImageElement) => i.naturalWidth)).toBeGreaterThan(0);
    const found = await new AxeBuilder({ page }).withTags(["wcag2a", "wcag2aa", "wcag22aa"]).analyze();
    expect(found.violations.map((v) => `${v.id}: ${v.nodes[0]?.html}`)).toEqual([]);
  } finally {
    rmSync(runs, { recursive: true, force: true });
  }
});
