// Starts what the tests look at: a demo cluster of real nodes, accounts of each
// role, and the built console before the API of the first node.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");
const command = join(root, "bin", "cartwheel");

/** Where the console is served. */
export const address = "http://127.0.0.1:4173";

/** The sites of the cluster. */
export const sites = ["amsterdam", "boston", "tokyo"];

/** Accounts with passwords, one of each role. */
export const accounts = ["viewer", "operator", "administrator"] as const;

/** The password of all of them. */
export const password = "a password for tests";

/** Runs a command of cartwheel in the cluster's folder. */
export function cartwheel(...words: string[]): string {
  const folder = process.env["CARTWHEEL_E2E_FOLDER"] ?? "";
  return execFileSync(command, words, { cwd: folder, encoding: "utf8", timeout: 60_000 });
}

function until(child: ChildProcess, text: string, limit: number): Promise<void> {
  return new Promise((done, failed) => {
    let said = "";
    const timer = setTimeout(() => failed(new Error(`no "${text}" within ${limit} ms: ${said}`)), limit);
    const hear = (chunk: Buffer) => {
      said += chunk.toString();
      if (!said.includes(text)) return;
      clearTimeout(timer);
      done();
    };
    child.stdout?.on("data", hear);
    child.stderr?.on("data", hear);
    child.on("exit", (code) => failed(new Error(`ended with ${code}: ${said}`)));
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const gone = new Promise((done) => child.once("exit", done));
  child.kill("SIGINT");
  const timer = setTimeout(() => child.kill("SIGKILL"), 15_000);
  await gone;
  clearTimeout(timer);
}

/** Playwright calls this before the tests, and what it returns behind them. */
export default async function start(): Promise<() => Promise<void>> {
  if (!existsSync(command)) throw new Error("bin/cartwheel is missing: run scripts/build");
  if (!existsSync(join(root, "console", "dist", "index.html"))) throw new Error("console/dist is missing: run scripts/console");
  const folder = mkdtempSync(join(tmpdir(), "cw-e2e-"));
  process.env["CARTWHEEL_E2E_FOLDER"] = folder;
  const demo = spawn(command, ["demo", "run", "--no-mounts", "--sites", sites.join(",")], { cwd: folder });
  const children = [demo];
  const stop = async () => {
    for (const child of children.reverse()) await end(child);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await until(demo, "ready", 60_000);
    const state = readFileSync(join(folder, "cartwheel-demo", "demo.json"), "utf8");
    const api = /"api": "([^"]+)"/.exec(state)?.[1];
    if (!api) throw new Error("the demo does not say where its API is");
    const secret = join(folder, "password");
    writeFileSync(secret, `${password}\n`);
    for (const role of accounts) {
      cartwheel("account", "add", role, "--role", role);
      cartwheel("account", "password", role, "--file", secret);
    }
    const web = spawn(process.execPath, [join(root, "node_modules/vite/bin/vite.js"), "preview", "--host", "127.0.0.1", "--strictPort"], { cwd: join(root, "console"), env: { ...process.env, CARTWHEEL_API: api } });
    children.push(web);
    await until(web, "4173", 60_000);
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}
