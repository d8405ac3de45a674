import { AxeBuilder } from "@axe-core/playwright";
import { expect, test } from "@playwright/test";
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
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
    await expect(page.getByRole("row", { name: /photos/ })).toContainText("no folder of a run");
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

test("two runs stand beside one another, by an address that can be shared", async ({ page, context }) => {
  const folder = process.env["CARTWHEEL_E2E_FOLDER"] ?? "";
  const runs = join(folder, "cartwheel-testbed");
  try {
    for (const seed of ["1", "2"]) {
      execFileSync(testbed, ["run", "coordinates", "--short", "--set", "live=0", "--seed", seed], { cwd: folder });
      renameSync(join(runs, readdirSync(runs).find((name) => name.startsWith("coordinates-"))!), join(runs, `seed-${seed}`));
    }
    mkdirSync(join(runs, "photos"));
    await signIn(page, "viewer");
    await page.goto("/experiments");
    await expect(page.getByRole("button", { name: /^Compare/ })).toHaveAccessibleName(/choose 2 to 5 runs/);
    await page.getByRole("checkbox", { name: "Compare seed-1" }).check();
    await page.getByRole("checkbox", { name: "Compare seed-2" }).check();
    await page.getByRole("button", { name: "Compare" }).click();
    await expect(page.getByRole("heading", { level: 1, name: "Compare runs" })).toBeVisible();

    const shared = await context.newPage();
    await shared.goto(page.url());
    await expect(shared.getByRole("table", { name: "The runs" }).getByRole("rowheader")).toHaveText(["seed-1", "seed-2"]);
    const accuracy = shared.getByRole("table", { name: /^Accuracy at the end/ });
    await shared.getByRole("combobox", { name: "Figures" }).selectOption("median error");
    await expect(shared).toHaveURL(/column=median/);
    const row = accuracy.getByRole("row").filter({ hasText: "plain 2-D, cities" }).first();
    await expect(row.getByRole("cell").last()).toContainText(/^[\d.]+[+−][\d.]+, [+−][\d.]+ %$/);
    await expect(shared.locator("main figure img")).toHaveCount(6);
    const found = await new AxeBuilder({ page: shared }).withTags(["wcag2a", "wcag2aa", "wcag22aa"]).analyze();
    expect(found.violations.map((v) => `${v.id}: ${v.nodes[0]?.html}`)).toEqual([]);

    await shared.getByRole("button", { name: "Choose others" }).click();
    await shared.getByRole("checkbox", { name: "Compare seed-2" }).uncheck();
    await shared.getByRole("checkbox", { name: "Compare photos" }).check();
    await shared.getByRole("button", { name: "Compare" }).click();
    await expect(shared.getByRole("status", { name: "What bounds the comparison" })).toContainText("photos is damaged");
  } finally {
    rmSync(runs, { recursive: true, force: true });
  }
});
