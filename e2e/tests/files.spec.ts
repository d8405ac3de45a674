import { expect, test } from "@playwright/test";
import { signIn } from "./people";

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
