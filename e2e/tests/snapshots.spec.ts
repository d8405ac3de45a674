import { expect, test } from "@playwright/test";
import { cartwheel } from "../cluster";
import { signIn } from "./people";

/** The last whole round of each node's scrub. */
function rounds(): number[] {
  const said = JSON.parse(cartwheel("scrub", "--report", "--json")) as { nodes: { scrub: { ended_round: number } }[] };
  return said.nodes.map((n) => n.scrub.ended_round);
}

test("an administrator keeps the tree under a name, has it made again, and deletes both", async ({ page }) => {
  await signIn(page, "administrator");
  await page.goto("/snapshots");
  const table = page.getByRole("table", { name: "Snapshots" });
  await page.getByLabel("Name of the new snapshot").fill("-1h");
  await expect(page.getByText("Not now: a name has letters, digits")).toBeVisible();
  await page.getByLabel("Name of the new snapshot").fill("before-upgrade");
  await page.getByLabel("For how long it is kept").fill("30d");
  await page.getByRole("button", { name: "Keep the tree as it is now" }).click();
  await expect(table.getByRole("rowheader", { name: "before-upgrade" })).toBeVisible();
  expect(cartwheel("snapshot", "list")).toContain("before-upgrade");

  await page.getByLabel("Name of the new schedule").fill("hourly");
  await page.getByLabel("every").fill("1h");
  await page.getByLabel("keep each for").fill("2h");
  await page.getByRole("button", { name: "Add the schedule" }).click();
  const schedules = page.getByRole("table", { name: "Schedules" });
  await expect(schedules.getByRole("row").filter({ hasText: "hourly" })).toContainText("administrator");
  await expect(table.getByRole("rowheader", { name: /^hourly-\d{8}T\d{4}Z$/ })).toBeVisible(); // a node made it, and the page heard of it
  await schedules.getByRole("button", { name: "End", exact: true }).click();
  await schedules.getByRole("button", { name: "End hourly" }).click();
  await expect(schedules).toHaveCount(0);

  await table.getByRole("button", { name: "Delete before-upgrade…" }).click();
  const dialog = page.getByRole("dialog", { name: "Delete this snapshot?" });
  await expect(dialog.getByRole("button", { name: /^Delete it/ })).toHaveAccessibleName(/write its name first/);
  await dialog.getByLabel("Its name, to be sure").fill("before-upgrade");
  await dialog.getByRole("button", { name: "Delete it" }).click();
  await expect(dialog).toHaveCount(0);
  await expect(table.getByRole("rowheader", { name: "before-upgrade" })).toHaveCount(0);
  expect(cartwheel("snapshot", "list")).not.toContain("before-upgrade");
});

test("the space of the past is counted, and a scrub is ordered", async ({ page }) => {
  await signIn(page, "administrator");
  await page.goto("/snapshots");
  await page.getByRole("button", { name: "Count now" }).click();
  await expect(page.getByText("needed by snapshots alone")).toBeVisible();
  await page.goto("/nodes");
  const scrub = page.getByRole("table", { name: "Scrub" });
  const before = Math.min(...rounds());
  await page.getByRole("button", { name: "Scrub all now" }).click();
  await expect(async () => expect(Math.min(...rounds())).toBeGreaterThan(before)).toPass({ timeout: 30_000 });
  await expect(scrub.getByText("Sound")).toHaveCount(3);
  await scrub.getByRole("rowheader").getByRole("link").first().click();
  await expect(page.getByText(/ago, in .+ compared$/)).toBeVisible();
});
