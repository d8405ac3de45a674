import { AxeBuilder } from "@axe-core/playwright";
import { expect, type Locator, type Page, test } from "@playwright/test";
import { signIn } from "./people";

/** A row of the list, by its name. */
function row(page: Page, name: string): Locator {
  return page.getByRole("table", { name: "Files" }).getByRole("row").filter({ has: page.getByRole("rowheader", { name, exact: true }) });
}

/** Uploads files into the folder that the page shows, and waits until all are stored. */
async function upload(page: Page, files: Record<string, Buffer | string>): Promise<void> {
  const list = Object.entries(files).map(([name, text]) => ({ name, mimeType: "application/octet-stream", buffer: Buffer.from(text) }));
  await page.getByLabel("Files to upload").setInputFiles(list);
  await expect(page.getByRole("list", { name: "Uploads" }).getByText("stored")).toHaveCount(list.length);
  for (const { name } of list) await expect(row(page, name)).toBeVisible();
}

/** Deletes what the folder that the page shows has by these names. */
async function tidy(page: Page, ...names: string[]): Promise<void> {
  for (const name of names) {
    await row(page, name).getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
    await expect(row(page, name)).toHaveCount(0);
  }
}

async function expectAxe(page: Page): Promise<void> {
  const found = await new AxeBuilder({ page }).withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]).analyze();
  expect(found.violations.map((v) => `${v.id}: ${v.nodes[0]?.html}`)).toEqual([]);
}

test("a viewer sees the properties of a folder, and why its copies are where they are", async ({ page }) => {
  await signIn(page, "viewer");
  await page.goto("/tree");
  await page.getByRole("button", { name: "Properties of this folder" }).click();
  await expect(page).toHaveURL(/show=/);
  await expect(page.getByRole("heading", { name: "Properties of /" })).toBeVisible();
  await expect(page.getByRole("definition").filter({ hasText: "rwxr-xr-x" })).toContainText("0755");
  await expect(page.getByRole("definition").filter({ hasText: "uid 65534 may" })).toHaveText("uid 65534 may read, go through");
  const copies = page.getByRole("table", { name: "Copies" });
  await expect(copies.getByRole("rowheader")).toHaveCount(3);
  await expect(copies).toContainText("the policy asks for 3 copies");
  await copies.getByRole("rowheader").first().getByRole("link").click();
  await expect(page).toHaveURL(/\/sites\//);
});

test("properties of what is not there say so", async ({ page }) => {
  await signIn(page, "viewer");
  await page.goto("/tree?show=/none");
  await expect(page.getByRole("alert")).toContainText("is not there");
  await page.getByRole("button", { name: "Close" }).click();
  await expect(page.getByRole("alert")).toHaveCount(0);
});

test("without a session the gateway tells no properties", async ({ request }) => {
  const answer = await request.get("/properties/");
  expect(answer.status()).toBe(401);
  expect(await answer.text()).not.toContain("object");
});

test("an operator's upload is refused where the gateway's user may not write, with the remedy", async ({ page }) => {
  await signIn(page, "operator");
  await page.goto("/tree");
  await page.getByLabel("Files to upload").setInputFiles({ name: "hello.txt", mimeType: "text/plain", buffer: Buffer.from("hello") });
  const alert = page.getByRole("list", { name: "Uploads" }).getByRole("alert");
  await expect(alert).toContainText("uid 65534");
  await expect(alert).toContainText("give it the right by mode, group or ACL");
});

test("a viewer sees that uploads need an operator", async ({ page }) => {
  await signIn(page, "viewer");
  await page.goto("/tree");
  await expect(page.getByRole("button", { name: /^Upload/ })).toHaveAccessibleName(/needs the role operator/);
});

test("the mode of another's folder cannot be changed, and the panel says why", async ({ page }) => {
  await signIn(page, "operator");
  await page.goto("/tree?show=/");
  const permissions = page.getByRole("group", { name: "Permissions" });
  await expect(permissions).toContainText("Only the owner, uid 0, may change the mode; the gateway acts as uid 65534.");
  await expect(permissions.getByLabel("Octal")).toHaveValue("0755");
  await expect(permissions.getByRole("checkbox", { name: "Owner: write" })).toBeChecked();
  await expect(permissions.getByRole("checkbox", { name: "Others: write" })).not.toBeChecked();
  await expect(permissions.getByRole("checkbox", { name: "Others: write" })).toBeDisabled();
});

test("an operator uploads a file, changes its mode, renames and deletes it", async ({ page }) => {
  await signIn(page, "operator");
  await page.goto("/tree?path=/public");
  await upload(page, { "hello.txt": "hello" });
  await row(page, "hello.txt").getByRole("button", { name: /^Properties/ }).click();
  const permissions = page.getByRole("group", { name: "Permissions" });
  await permissions.getByLabel("Octal").fill("0640");
  await permissions.getByRole("button", { name: "Change mode" }).click();
  await expect(page.getByRole("definition").filter({ hasText: "rw-r-----" })).toContainText("0640");

  await row(page, "hello.txt").getByRole("button", { name: "Rename… hello.txt" }).click();
  const move = page.getByRole("dialog", { name: "Rename or move /public/hello.txt" });
  await expect(move.getByRole("button", { name: /^Move/ })).toHaveAccessibleName(/it has this path already/);
  await move.getByLabel("New path").fill("/public/renamed.txt");
  await expect(move.getByRole("button", { name: "Copy as command" })).toHaveAttribute("title", "mv -n cartwheel/public/hello.txt cartwheel/public/renamed.txt");
  await expectAxe(page);
  await move.getByRole("button", { name: "Move" }).click();
  await expect(page.getByRole("status").filter({ hasText: "Moved" })).toHaveText("Moved /public/hello.txt to /public/renamed.txt.");
  await expect(row(page, "hello.txt")).toHaveCount(0);
  await expect(page.getByRole("heading", { name: "Properties of /public/hello.txt" })).toHaveCount(0);

  await row(page, "renamed.txt").getByRole("button", { name: "Delete… renamed.txt" }).click();
  const remove = page.getByRole("dialog", { name: "Delete this file?" });
  await expect(remove).toContainText("/public/renamed.txt");
  await expect(remove.getByRole("button", { name: "Copy as command" })).toHaveAttribute("title", "rm cartwheel/public/renamed.txt");
  await expectAxe(page);
  await remove.getByRole("button", { name: "Keep it" }).click();
  await expect(remove).toHaveCount(0);
  await expect(row(page, "renamed.txt")).toBeVisible();
  await tidy(page, "renamed.txt");
  await expect(page.getByText("This folder is empty")).toBeVisible();
  await page.reload();
  await expect(page.getByText("This folder is empty")).toBeVisible();
});

test("a folder is deleted when nothing is in it, and until then the page says what to do", async ({ page }) => {
  await signIn(page, "operator");
  await page.goto("/tree?path=/public");
  await page.getByLabel("Name of the new folder").fill("new folder");
  await expect(page.getByRole("button", { name: "Copy as command" })).toHaveAttribute("title", "mkdir 'cartwheel/public/new folder'");
  await page.getByRole("button", { name: "Make folder" }).click();
  await expect(row(page, "new folder/")).toBeVisible();
  await page.getByLabel("Name of the new folder").fill("new folder");
  await page.getByRole("button", { name: "Make folder" }).click();
  await expect(page.getByRole("alert")).toContainText("/public/new folder: is there already: choose another name.");

  await row(page, "new folder/").getByRole("link").click();
  await upload(page, { "inside.txt": "inside" });
  await page.getByRole("navigation", { name: "Folder" }).getByRole("link", { name: "public" }).click();
  await row(page, "new folder/").getByRole("button", { name: "Delete…" }).click();
  const remove = page.getByRole("dialog", { name: "Delete this folder?" });
  await expect(remove.getByRole("button", { name: "Copy as command" })).toHaveAttribute("title", "rmdir 'cartwheel/public/new folder'");
  await remove.getByRole("button", { name: "Delete", exact: true }).click();
  await expect(remove.getByRole("alert")).toContainText("delete what is in it, or use a mount");
  await page.keyboard.press("Escape");
  await expect(remove).toHaveCount(0);

  await row(page, "new folder/").getByRole("link").click();
  await tidy(page, "inside.txt");
  await page.getByRole("navigation", { name: "Folder" }).getByRole("link", { name: "public" }).click();
  await tidy(page, "new folder/");
});

test("a name that is taken stays, unless the operator asks to replace it", async ({ page }) => {
  await signIn(page, "operator");
  await page.goto("/tree?path=/public");
  await upload(page, { "one.txt": "the first", "two.txt": "the second" });
  await row(page, "one.txt").getByRole("button", { name: "Rename…" }).click();
  const move = page.getByRole("dialog");
  await move.getByLabel("New path").fill("/public/two.txt");
  await move.getByRole("button", { name: "Move" }).click();
  await expect(move.getByRole("alert")).toContainText("is there already: choose another name");
  await move.getByLabel("Replace a file that has this path").check();
  await expect(move.getByRole("button", { name: "Copy as command" })).toHaveAttribute("title", "mv -f cartwheel/public/one.txt cartwheel/public/two.txt");
  await move.getByRole("button", { name: "Move" }).click();
  await expect(row(page, "one.txt")).toHaveCount(0);
  await row(page, "two.txt").getByRole("button", { name: "Preview" }).click();
  await expect(page.getByRole("region", { name: "Content of two.txt" })).toHaveText("the first");
  await tidy(page, "two.txt");
});

test("texts and pictures are shown, and nothing in them runs", async ({ page }) => {
  const errors: string[] = [];
  page.on("dialog", (d) => void d.dismiss().then(() => errors.push("a script ran")));
  page.on("console", (m) => m.text().includes("Content Security Policy") && errors.push(m.text()));
  await signIn(page, "operator");
  await page.goto("/tree?path=/public");
  const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40"><rect width="60" height="40"/><script>alert(1)</script></svg>';
  const png = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=", "base64");
  await upload(page, { "page.html": "<script>alert(1)</script><b>bold?</b>", "long.log": `${"wheel\n".repeat(20_000)}the end`, "raw.bin": Buffer.from([1, 0, 2]), "empty.txt": "", "a.svg": svg, "b.png": png, "c.png": "no picture" });
  const preview = (name: string) => row(page, name).getByRole("button", { name: `Preview ${name}` }).click();

  await preview("page.html");
  await expect(page.getByRole("region", { name: "Content of page.html" })).toHaveText("<script>alert(1)</script><b>bold?</b>");
  await expectAxe(page);
  await preview("long.log");
  const content = page.getByRole("region", { name: "Content of long.log" });
  await expect(page.getByRole("status").filter({ hasText: "The first" })).toHaveText("The first 64 KiB of it.");
  expect((await content.textContent())?.length).toBe(64 << 10);
  await preview("raw.bin");
  await expect(page.getByRole("status").filter({ hasText: "neither a text nor a picture" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Download raw.bin" })).toHaveAttribute("href", "/files/public/raw.bin");
  await preview("empty.txt");
  await expect(page.getByRole("status").filter({ hasText: "This file is empty." })).toBeVisible();
  for (const [name, width] of [["a.svg", 60], ["b.png", 1]] as const) {
    await preview(name);
    await expect.poll(() => page.getByRole("img", { name: `Picture ${name}` }).evaluate((i) => (i as HTMLImageElement).naturalWidth)).toBe(width);
  }
  await preview("c.png");
  await expect(page.getByRole("status").filter({ hasText: "cannot show this picture" })).toBeVisible();
  await page.reload();
  await expect(page.getByRole("heading", { name: "Preview of /public/c.png" })).toBeVisible();
  await page.goto("/tree?preview=/public");
  await expect(page.getByRole("alert")).toContainText("/public is a folder");
  await page.goto("/tree?path=/public");
  await tidy(page, "page.html", "long.log", "raw.bin", "empty.txt", "a.svg", "b.png", "c.png");
  expect(errors).toEqual([]);
});

test("a viewer sees that changes need an operator", async ({ page }) => {
  await signIn(page, "viewer");
  await page.goto("/tree");
  for (const what of ["Rename…", "Delete…"]) {
    const button = row(page, "public/").getByRole("button", { name: what });
    await expect(button).toHaveAccessibleName(/needs the role operator; you are viewer/);
    await button.click({ force: true });
    await expect(page.getByRole("dialog")).toHaveCount(0);
  }
  await expect(page.getByLabel("Name of the new folder")).toHaveAttribute("readonly");
  await expect(page.getByRole("button", { name: /^Make folder/ })).toHaveAccessibleName(/needs the role operator/);
  await expectAxe(page);
});

test("the gateway refuses a viewer's changes, whatever the page says", async ({ page }) => {
  await signIn(page, "viewer");
  const session = (await (await page.request.get("/api/v1/session")).json()) as { csrf: string };
  for (const method of ["MKCOL", "MOVE", "DELETE"]) {
    const answer = await page.request.fetch("/files/public", { method, headers: { "X-Cartwheel-CSRF": session.csrf, Destination: "/files/moved" } });
    expect(answer.status()).toBe(403);
    expect(await answer.text()).toContain("operator");
  }
});
