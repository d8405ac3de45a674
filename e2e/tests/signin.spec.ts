import { expect, test } from "@playwright/test";
import { address, cartwheel } from "../cluster";
import { signIn } from "./people";

test("a one-time link signs in, once, and leaves the address", async ({ page, browser }) => {
  const link = /http\S+/.exec(cartwheel("console", "link", "administrator", "--console", address))![0];
  await page.goto(link);
  await expect(page.getByRole("heading", { level: 1, name: "Overview" })).toBeVisible();
  expect(page.url()).not.toContain("link=");
  const other = await (await browser.newContext()).newPage();
  await other.goto(link);
  await expect(other.getByRole("alert")).toBeVisible();
  await expect(other.getByRole("button", { name: "Sign in" })).toBeVisible();
  await other.context().close();
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
