import { expect, test } from "@playwright/test";
import { cartwheel } from "../cluster";
import { signIn } from "./people";

test("a rehearsed loss says what stays available, and changes nothing", async ({ page }) => {
  await signIn(page, "viewer");
  await page.goto("/what-if");
  await page.getByRole("group", { name: "Sites to lose" }).getByRole("button", { name: "tokyo" }).click();
  await expect(page.getByText(/All stays available/)).toBeVisible();
  await expect(page.getByRole("region", { name: "Latency by site" }).getByText("no node left")).toBeVisible();
  await page.reload();
  await expect(page.getByRole("group", { name: "Sites to lose" }).getByRole("button", { name: "tokyo" })).toHaveAttribute("aria-pressed", "true");
  await page.goto("/");
  await expect(page.getByRole("region", { name: "Health" })).toContainText("3 nodes at 3 sites");
});

test("an operator moves an active from paper to the cluster, and back", async ({ page }) => {
  await signIn(page, "operator");
  await page.goto("/slices/1");
  const strip = page.getByRole("img", { name: /^Copies:/ }).first();
  await expect(strip).toBeVisible();
  const before = /(\w+) active/.exec((await strip.getAttribute("aria-label"))!)![1]!;
  const target = ["amsterdam", "boston", "tokyo"].find((s) => s !== before)!;
  await page.getByRole("link", { name: "Try a change on paper" }).click();
  await page.getByLabel("Its active to").selectOption(target);
  await expect(page.getByRole("list", { name: "Steps" })).toContainText(`Hand slice 1 over to ${target}`);
  await page.getByRole("button", { name: "Apply the draft" }).click();
  await expect(page.getByRole("list", { name: "Steps" })).toContainText("done");
  await page.getByRole("button", { name: "Undo" }).click();
  await expect(page.getByRole("list", { name: "Steps" })).toContainText("undone");
});

test("a viewer sees why applying is not for them", async ({ page }) => {
  await signIn(page, "viewer");
  await page.goto('/what-if?move=[{"slice":1,"site":"tokyo"}]');
  const apply = page.getByRole("button", { name: /^Apply the draft/ });
  await expect(apply).toHaveAttribute("aria-disabled", "true");
  await expect(apply).toHaveAccessibleName(/needs the role operator/);
  await page.goto("/settings");
  await expect(page.getByRole("alert").first()).toContainText("You may not see the accounts");
});

test("a change made elsewhere shows by itself, as text", async ({ page }) => {
  await signIn(page, "administrator");
  await page.goto("/sites");
  await expect(page.getByRole("rowheader", { name: "tokyo" })).toBeVisible();
  let dialogs = 0;
  page.on("dialog", (d) => {
    dialogs++;
    void d.dismiss();
  });
  cartwheel("site", "add", "attic", "--location", '<img src=x onerror="alert(1)">');
  await expect(page.getByRole("rowheader", { name: "attic" })).toBeVisible();
  await expect(page.getByText('<img src=x onerror="alert(1)">')).toBeVisible();
  expect(dialogs).toBe(0);
  cartwheel("site", "remove", "attic");
  await expect(page.getByRole("rowheader", { name: "attic" })).toHaveCount(0);
});

test("a lost stream says so, and the page catches up", async ({ page, context }) => {
  await signIn(page, "viewer");
  await expect(page.getByRole("button", { name: "Live" })).toBeVisible();
  await context.setOffline(true);
  await page.evaluate(() => dispatchEvent(new Event("offline")));
  await expect(page.getByRole("button", { name: /Reconnecting|Stale/ })).toBeVisible({ timeout: 50_000 });
  await context.setOffline(false);
  await expect(page.getByRole("button", { name: "Live" })).toBeVisible({ timeout: 40_000 });
});
