import { expect, type Page } from "@playwright/test";
import { password } from "../cluster";

/** Signs in as the account of a role. */
export async function signIn(page: Page, role: "viewer" | "operator" | "administrator"): Promise<void> {
  await page.goto("/sign-in");
  await page.getByLabel("Name").fill(role);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Overview" })).toBeVisible();
}
