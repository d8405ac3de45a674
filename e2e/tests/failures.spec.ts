import { expect, type Page, test } from "@playwright/test";
import { cartwheel, demoState, sites } from "../cluster";
import { signIn } from "./people";

/** How soon the console has to say what happened, in milliseconds. */
const soon = { timeout: 10_000 };

const health = (page: Page) => page.getByRole("region", { name: "Health" });
const warning = (page: Page) => page.getByRole("status").filter({ hasText: "does not answer" });

/** The site whose node answers the page. */
async function servingSite(page: Page): Promise<string> {
  const text = await health(page).textContent();
  return /as (\w+) sees it/.exec(text ?? "")![1]!;
}

function nodeAt(site: string): number {
  return demoState().sites.find((s) => s.name === site)!.node_pid;
}

test.describe.configure({ timeout: 120_000 });

test("the database stops for a while: data stay, with their age", async ({ page }) => {
  await signIn(page, "operator");
  await expect(health(page)).toContainText("All well");
  await page.goto("/database");
  const main = page.getByRole("main");
  await expect(page.getByText("Answers", { exact: true })).toBeVisible();
  const drain = page.getByRole("button", { name: "Drain…" });
  const database = demoState().geo_config.pid;
  process.kill(database, "SIGSTOP");
  try {
    await expect(page.getByText("Silent", { exact: true })).toBeVisible({ timeout: 30_000 });
    await expect(warning(page)).toContainText("Reads and writes of files go on");
    await expect(main.getByRole("time").last()).toContainText("ago"); // when it last described itself
    await expect(main).not.toContainText("Not known");
    await page.goto("/");
    await expect(warning(page)).toContainText("The configuration store does not answer");
    await expect(page.getByRole("region", { name: "Health" }).getByRole("time")).toContainText(/now|ago/);
    await expect(main).toContainText("Nodes up3 / 3");
    await page.goto("/slices");
    await expect(page.getByRole("link", { name: "1", exact: true })).toBeVisible();
    await page.goto("/sites/tokyo");
    await expect(drain).toHaveAttribute("title", /does not answer/);
  } finally {
    process.kill(database, "SIGCONT");
  }
  await expect(drain).toBeEnabled({ timeout: 30_000 }); // on the page that is open
  await page.goto("/database");
  await expect(page.getByText("Answers", { exact: true })).toBeVisible({ timeout: 30_000 });
  await page.goto("/");
  await expect(health(page)).toContainText("All well", { timeout: 30_000 });
  await expect(warning(page)).toHaveCount(0);
});

test("a killed node shows within seconds, and so does its return", async ({ page }) => {
  await signIn(page, "viewer");
  await expect(health(page)).toContainText("All well");
  const serving = await servingSite(page);
  const lost = sites.find((s) => s !== serving)!;
  process.kill(nodeAt(lost), "SIGKILL");
  try {
    await expect(warning(page)).toContainText(new RegExp(`at ${lost} does not answer; its figures are from`), soon);
    await expect(health(page)).not.toContainText("All well", soon);
  } finally {
    cartwheel("demo", "heal", lost);
  }
  await expect(health(page)).toContainText("All well", { timeout: 60_000 });
  await expect(warning(page)).toHaveCount(0);
});

test("the page goes on when the node that answers it is killed", async ({ page }) => {
  await signIn(page, "viewer");
  await expect(health(page)).toContainText("All well");
  const lost = await servingSite(page);
  process.kill(nodeAt(lost), "SIGKILL");
  try {
    await expect(health(page)).toContainText(new RegExp(`as (?!${lost})\\w+ sees it`), { timeout: 20_000 });
    await expect(warning(page)).toContainText(`at ${lost} does not answer`);
    await expect(page.getByRole("button", { name: "Live" })).toBeVisible({ timeout: 20_000 });
  } finally {
    cartwheel("demo", "heal", lost);
  }
  await expect(health(page)).toContainText("All well", { timeout: 60_000 });
});

// The node to which the gateway goes over has not checked the session, and cannot.
test("the page goes on when the database stops and then the node that answers is killed", async ({ page }) => {
  await signIn(page, "operator");
  await expect(health(page)).toContainText("All well");
  const lost = await servingSite(page);
  const database = demoState().geo_config.pid;
  process.kill(database, "SIGSTOP");
  try {
    await expect(warning(page)).toContainText("The configuration store does not answer", { timeout: 30_000 });
    process.kill(nodeAt(lost), "SIGKILL");
    await expect(health(page)).toContainText(new RegExp(`as (?!${lost})\\w+ sees it`), { timeout: 20_000 });
    await expect(page.getByRole("main")).toContainText("Nodes up2 / 3", soon);
  } finally {
    process.kill(database, "SIGCONT");
    cartwheel("demo", "heal", lost);
  }
  await expect(health(page)).toContainText("All well", { timeout: 60_000 });
});
