import { expect, test } from "@playwright/test";
import { cartwheel } from "../cluster";
import { signIn } from "./people";

test("a drill from a shell shows in the console, with its pauses and without loss", async ({ page }) => {
  test.setTimeout(120_000);
  await signIn(page, "viewer");
  await page.goto("/drills");
  await expect(page.getByRole("heading", { level: 1, name: "Drills" })).toBeVisible();
  const before = await page.getByRole("table", { name: "Drills" }).getByRole("row").count();
  await expect(async () => {
    cartwheel("drill", "--geo-config", "--for", "1s"); // the tests before may have left a slice that is not whole yet
  }).toPass({ timeout: 60_000 });
  const table = page.getByRole("table", { name: "Drills" });
  const row = table.getByRole("row").nth(1); // the newest one
  await expect(table.getByRole("row")).toHaveCount(Math.max(before, 1) + 1);
  await expect(row).toContainText("geo-config");
  await expect(row).toContainText("Went as planned");
  await expect(page.getByRole("img", { name: /^Pauses of \d+ drills?, from the oldest to the newest/ })).toBeVisible();
  await expect(page.getByText("nothing was ever lost")).toBeVisible();
});
