import { generateKeyPairSync } from "node:crypto";
import { expect, type Page, test } from "@playwright/test";
import { cartwheel } from "../cluster";
import { signIn } from "./people";

/** The health in words, once it is good: the next test begins there. */
async function allWell(page: Page): Promise<void> {
  await page.goto("/");
  await expect(page.getByRole("region", { name: "Health" })).toContainText("All well", { timeout: 60_000 });
}

test("an operator drains a node after the verdict, and ends it", async ({ page }) => {
  await signIn(page, "operator");
  await page.goto("/sites/tokyo");
  await page.getByRole("table", { name: "Nodes of tokyo" }).getByRole("rowheader").getByRole("link").first().click();
  await expect(page).toHaveURL(/\/nodes\//);
  await page.getByRole("button", { name: "Drain…" }).click();
  // Three nodes hold three copies: none can leave.
  await expect(page.getByRole("status").filter({ hasText: "cannot leave" })).toBeVisible();
  await expect(page.getByRole("list", { name: "In the way" })).toContainText("needs 3 copies");
  const begin = page.getByRole("button", { name: /^Begin to drain/ });
  await expect(begin).toHaveAccessibleName(/something stands in the way/);
  await page.getByLabel(/Begin all the same/).check();
  await expect(page.getByRole("button", { name: "Copy as command" }).first()).toHaveAttribute("title", /^cartwheel node drain \S+ --force$/);
  await begin.click();
  await expect(page.getByRole("status").filter({ hasText: "It is being drained" })).toContainText("left");
  expect(cartwheel("node", "ls")).toContain("drain");
  await page.getByRole("button", { name: "End the drain" }).click();
  await expect(page.getByRole("button", { name: "Drain…" })).toBeVisible();
  await expect(page.getByRole("status").filter({ hasText: "being drained" })).toHaveCount(0);
  await allWell(page);
});

test("an operator drains a site, which the list of nodes shows", async ({ page }) => {
  await signIn(page, "operator");
  await page.goto("/sites/boston");
  await page.getByRole("button", { name: "Drain…" }).click();
  await page.getByLabel(/Begin all the same/).check();
  await expect(page.getByRole("button", { name: "Copy as command" }).first()).toHaveAttribute("title", "cartwheel site drain boston --force");
  await page.getByRole("button", { name: /^Begin to drain/ }).click();
  await expect(page.getByRole("status").filter({ hasText: "All its nodes are being drained" })).toBeVisible();
  await page.goto("/nodes");
  await expect(page.getByRole("table", { name: "Nodes" }).getByRole("row").filter({ hasText: "boston" })).toContainText("Draining");
  await page.goto("/sites/boston");
  await page.getByRole("button", { name: "End the drain" }).click();
  await expect(page.getByRole("button", { name: "Drain…" })).toBeVisible();
  await allWell(page);
});

test("an operator changes a slice's policy beside its prediction", async ({ page }) => {
  test.setTimeout(120_000);
  await signIn(page, "operator");
  await page.goto("/slices/1");
  const copies = page.getByRole("table", { name: "Copies" }).getByRole("row");
  await expect(copies).toHaveCount(4); // with the heading
  for (const level of ["2", "3"]) {
    await page.getByRole("button", { name: "Change…" }).click();
    await page.getByRole("combobox", { name: "Copies" }).selectOption(level);
    await expect(page.getByRole("region", { name: "What it would do" }).getByRole("status")).not.toBeEmpty();
    await expect(page.getByRole("button", { name: "Copy as command" }).first()).toHaveAttribute("title", `cartwheel policy set 1 --level ${level}`);
    await page.getByRole("button", { name: "Change the policy" }).click();
    await expect(copies).toHaveCount(Number(level) + 1, { timeout: 40_000 });
  }
  await allWell(page);
});

test("a viewer sees what a policy brings in a year, by assumptions of their own", async ({ page }) => {
  await signIn(page, "viewer");
  await page.goto("/slices/1");
  const expected = page.getByRole("region", { name: "Expected in a year" });
  await expect(expected.getByRole("definition").first()).toContainText("of it in pauses");
  const usual = await expected.getByRole("definition").first().textContent();
  await expected.getByText("Assumptions").click();
  await expected.getByLabel("A node goes and comes back").fill("60");
  await expect(expected).toHaveAttribute("aria-busy", "false");
  await expect(expected.getByRole("definition").first()).not.toHaveText(usual!);
  await expected.getByLabel("It is away for").first().fill("100000");
  await expect(expected.getByRole("alert")).toContainText("copies are missing for more than 10 %");
  await expected.getByRole("button", { name: "Back to the usual ones" }).click();
  await expect(expected.getByRole("definition").first()).toHaveText(usual!);
});

test("an administrator adds a site, says where it is, and removes it", async ({ page }) => {
  await signIn(page, "administrator");
  await page.goto("/sites");
  await page.getByLabel("Name of the new site").fill("oslo");
  await page.getByLabel("Where the new site is").fill("Oslo");
  await page.getByRole("button", { name: "Add the site" }).click();
  await page.getByRole("rowheader", { name: "oslo" }).getByRole("link").click();
  await page.getByRole("textbox", { name: "Location" }).fill("Oslo, Norway");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("definition").filter({ hasText: "Oslo, Norway" })).toBeVisible();
  expect(cartwheel("site", "ls")).toContain("Oslo, Norway");
  await page.getByRole("button", { name: "Remove", exact: true }).click();
  await page.getByRole("button", { name: "Remove oslo" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Sites" })).toBeVisible();
  await expect(page.getByRole("rowheader", { name: "tokyo" })).toBeVisible();
  await expect(page.getByRole("rowheader", { name: "oslo" })).toHaveCount(0);
});

test("a node that has copies is not removed, and the page says why", async ({ page }) => {
  await signIn(page, "administrator");
  await page.goto("/nodes");
  await page.getByRole("table", { name: "Nodes" }).getByRole("rowheader").getByRole("link").first().click();
  await page.getByRole("button", { name: "Remove", exact: true }).click();
  await page.getByRole("button", { name: /^Remove / }).click();
  await expect(page.getByRole("alert")).toContainText("member of slices");
});

test("an administrator adds a user by an ssh key, and revokes it", async ({ page }) => {
  const key = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" }).x ?? "";
  const kind = "ssh-ed25519"; // its line holds lengths and bytes: of the kind, and of the key
  const parts = [Buffer.from(kind), Buffer.from(key, "base64url")].flatMap((part) => [Buffer.from([0, 0, 0, part.length]), part]);
  await signIn(page, "administrator");
  await page.goto("/settings?tab=users");
  await page.getByLabel("Name of the new user").fill("ann");
  await page.getByLabel("The user's key").fill("a line of nothing");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByRole("alert")).toContainText("one line of an OpenSSH public key");
  await page.getByLabel("The user's key").fill(`${kind} ${Buffer.concat(parts).toString("base64")} ann@desk`);
  await page.getByLabel("groups").fill("1000, 27");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  const ann = page.getByRole("table", { name: "Users" }).getByRole("row").filter({ hasText: "ann" });
  await expect(ann).toContainText("1000, 27");
  expect(cartwheel("user", "ls")).toContain("ann");
  await ann.getByRole("button", { name: "Revoke", exact: true }).click();
  await ann.getByRole("button", { name: "Revoke ann" }).click();
  await expect(ann).toHaveCount(0);
});

test("an operator has a node measure its round trips now", async ({ page }) => {
  await signIn(page, "operator");
  await page.goto("/network");
  await page.getByRole("button", { name: "Measure now" }).click();
  const measured = page.getByRole("table", { name: "Round trips just measured" });
  await expect(measured.getByRole("rowheader")).toHaveCount(2);
  await expect(measured.getByRole("row").nth(1)).toContainText("ms");
});

test("a draft drains a site and moves a home, on paper", async ({ page }) => {
  await signIn(page, "operator");
  await page.goto("/what-if?slice=1");
  await page.getByRole("group", { name: "Sites to drain" }).getByRole("button", { name: "tokyo" }).click();
  await page.getByLabel("Its home at").selectOption({ index: 1 });
  const steps = page.getByRole("list", { name: "Steps" });
  await expect(steps).toContainText("Drain tokyo");
  await expect(steps).toContainText("Set the home of slice 1 to");
  await expect(page.getByRole("button", { name: "Copy as command" })).toHaveAttribute("title", /^cartwheel what-if --drain-site tokyo --home 1=\w+$/);
});

test("a viewer sees the actions, and why they are not for them", async ({ page }) => {
  await signIn(page, "viewer");
  for (const [address, name, role] of [
    ["/sites/tokyo", /^Drain…/, "operator"],
    ["/sites/tokyo", /^Save/, "administrator"],
    ["/sites/tokyo", /^Remove/, "administrator"],
    ["/sites", /^Add the site/, "administrator"],
    ["/slices/1", /^Change…/, "operator"],
    ["/network", /^Measure now/, "operator"],
  ] as const) {
    await page.goto(address);
    const button = page.getByRole("button", { name });
    await expect(button, address).toHaveAttribute("aria-disabled", "true");
    await expect(button, address).toHaveAccessibleName(new RegExp(`needs the role ${role}`));
  }
});

test("sign-in offers the provider of a node that has one", async ({ page }) => {
  await page.goto("/sign-in");
  await expect(page.getByRole("button", { name: "Sign in" })).toBeVisible();
  await expect(page.getByRole("link", { name: /^Sign in with/ })).toHaveCount(0); // the demo has none
  await page.route("**/api/v1/session/ways", (route) => route.fulfill({ json: { password: true, issuer: "https://login.example.com/realm" } }));
  await page.goto("/sign-in?failed=oidc");
  await expect(page.getByRole("link", { name: "Sign in with login.example.com" })).toHaveAttribute("href", "/api/v1/session/oidc");
  await expect(page.getByRole("alert")).toContainText("Ask an administrator");
});

test("a row of the slices opens its slice without loading the page anew", async ({ page }) => {
  await signIn(page, "viewer");
  await page.goto("/slices");
  await page.evaluate(() => document.body.setAttribute("data-same", ""));
  await page.getByRole("table", { name: "Slices" }).getByRole("link", { name: "1", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Slice 1" })).toBeVisible();
  await expect(page.locator("body[data-same]")).toHaveCount(1);
});
