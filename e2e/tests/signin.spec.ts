import { type Browser, expect, type Page, test } from "@playwright/test";
import { cartwheel } from "../cluster";
import { signIn } from "./people";

/** Opens a link, sees that it signs in, and that it does so once. */
async function opensOnce(link: string, account: string, page: Page, browser: Browser): Promise<void> {
  await page.goto(link);
  await expect(page.getByRole("heading", { level: 1, name: "Overview" })).toBeVisible();
  await expect(page.getByRole("button", { name: `Account of ${account}` })).toBeVisible();
  expect(page.url()).not.toContain("link=");
  const other = await (await browser.newContext()).newPage();
  await other.goto(link);
  await expect(other.getByRole("alert")).toContainText("The link was used already, or has expired");
  await expect(other.getByRole("alert")).toContainText("cartwheel console link");
  await expect(other.getByRole("button", { name: "Sign in" })).toBeVisible();
  await other.context().close();
}

test("the link that the demo prints makes its first visitor administrator, once", async ({ page, browser }) => {
  await opensOnce(process.env["CARTWHEEL_E2E_LINK"]!, "admin", page, browser);
  await page.goto("/settings");
  await expect(page.getByRole("rowheader", { name: "admin", exact: true })).toBeVisible();
});

test("a link that a command makes signs in, once", async ({ page, browser }) => {
  const link = /http\S+/.exec(cartwheel("console", "link", "operator"))![0];
  await opensOnce(link, "operator", page, browser);
});

test("a wrong password is refused without a word about the account", async ({ page }) => {
  await page.goto("/sites");
  await expect(page.getByRole("heading", { name: "Sign in" })).toBeVisible();
  await page.getByLabel("Name").fill("nobody");
  await page.getByLabel("Password").fill("wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("alert")).toContainText("name or the password is wrong");
});

test("signing in leads to the page that was asked for, signing out away", async ({ page }) => {
  await signIn(page, "viewer");
  await page.getByRole("button", { name: /^Account/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await expect(page.getByRole("heading", { name: "Sign in" })).toBeVisible();
  await page.goto("/nodes");
  await expect(page.getByRole("heading", { name: "Sign in" })).toBeVisible();
});
