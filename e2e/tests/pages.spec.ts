import { AxeBuilder } from "@axe-core/playwright";
import { expect, test } from "@playwright/test";
import { join } from "node:path";
import { signIn } from "./people";

// Each page by its address, with the heading that it has.
const pages: [string, string, string][] = [
  ["overview", "/", "Overview"],
  ["what-if", '/what-if?lose=["tokyo"]', "What-if"],
  ["network", "/network", "Network"],
  ["coordinates", "/network?tab=coordinates", "Network"],
  ["sites", "/sites", "Sites"],
  ["site", "/sites/tokyo", "tokyo"],
  ["nodes", "/nodes", "Nodes"],
  ["slices", "/slices", "Slices"],
  ["slice", "/slices/1", "Slice 1"],
  ["operations", "/operations", "Operations"],
  ["activity", "/activity", "Activity"],
  ["drills", "/drills", "Drills"],
  ["snapshots", "/snapshots", "Snapshots"],
  ["clients", "/clients", "Clients"],
  ["files", "/tree", "Files"],
  ["files-properties", "/tree?show=/", "Files"],
  ["experiments", "/experiments", "Experiments"],
  ["database", "/database", "Database"],
  ["settings", "/settings", "Settings"],
  ["tokens", "/settings?tab=tokens", "Settings"],
];

const screenshots = process.env["CARTWHEEL_SCREENSHOTS"];

for (const scheme of ["light", "dark"] as const) {
  for (const width of [1280, 390]) {
    test(`every page at ${width} px, ${scheme}, passes axe and fits`, async ({ page }) => {
      test.setTimeout(240_000);
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
      await page.setViewportSize({ width, height: width === 390 ? 844 : 900 });
      const errors: string[] = [];
      page.on("pageerror", (error) => errors.push(error.message));
      page.on("console", (m) => m.text().includes("Content Security Policy") && errors.push(m.text()));
      await signIn(page, "administrator");
      for (const [name, address, heading] of pages) {
        await page.goto(address);
        await expect(page.getByRole("heading", { level: 1, name: heading }), name).toBeVisible();
        await expect(page.getByRole("status", { name: /^Loading/ }), name).toHaveCount(0);
        await page.waitForLoadState("domcontentloaded");
        await expect(page.locator("main .bone"), name).toHaveCount(0);
        const found = await new AxeBuilder({ page }).withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]).analyze();
        expect.soft(found.violations.map((v) => `${name}: ${v.id}: ${v.nodes[0]?.html}`)).toEqual([]);
        const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        expect.soft(over, `${name} is wider than the window`).toBeLessThanOrEqual(0);
        if (screenshots) await page.screenshot({ path: join(screenshots, `${name}-${width === 390 ? "phone-" : ""}${scheme}.png`) });
      }
      expect(errors).toEqual([]);
    });
  }
}

test("map and table show the same sites", async ({ page }) => {
  await signIn(page, "viewer");
  const marks = page.locator('[data-testid^="map-"]');
  await expect(marks).not.toHaveCount(0);
  const onMap = await marks.evaluateAll((all) => all.map((m) => (m as HTMLElement).dataset["testid"]!.slice("map-".length)));
  const unplaced = await page.getByRole("list", { name: "Not on the map" }).getByRole("link").allTextContents();
  await page.getByRole("group", { name: "Show as" }).getByRole("button", { name: "table" }).click();
  await expect(page).toHaveURL(/view=table/);
  await expect(page.getByRole("region", { name: "Table of sites" }).getByRole("rowheader")).toHaveText([...onMap, ...unplaced].sort());
});

test("the matrix is walked by arrow keys, and its mode is in the address", async ({ page }) => {
  await signIn(page, "viewer");
  await page.goto("/network");
  const grid = page.getByRole("grid");
  await grid.getByRole("gridcell", { name: /^amsterdam to boston/ }).click();
  await page.keyboard.press("ArrowRight");
  await expect(grid.getByRole("gridcell", { name: /^amsterdam to tokyo/ })).toBeFocused();
  await page.keyboard.press("ArrowDown");
  await expect(page.getByRole("heading", { name: "boston → tokyo" })).toBeVisible();
  await page.getByRole("button", { name: "Difference" }).click();
  await page.reload();
  await expect(page.getByRole("button", { name: "Difference" })).toHaveAttribute("aria-pressed", "true");
});

test("keys go to pages, and search opens a site", async ({ page }) => {
  await signIn(page, "viewer");
  await page.keyboard.press("g");
  await page.keyboard.press("l");
  await expect(page.getByRole("heading", { level: 1, name: "Slices" })).toBeVisible();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: /^Search/ }).fill("bost");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1, name: "boston" })).toBeVisible();
});

test("a bad address falls back, a missing slice says so", async ({ page }) => {
  await signIn(page, "viewer");
  await page.goto("/network?mode=nonsense&by=7");
  await expect(page.getByRole("button", { name: "Measured" })).toHaveAttribute("aria-pressed", "true");
  await page.goto("/slices/999999");
  await expect(page.getByRole("alert")).toContainText("is no slice that this node knows");
  await expect(page.getByRole("alert")).toContainText("Request");
});
