// Starts what the tests look at: a demo cluster of real nodes with its console's
// gateway, and accounts of each role.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");
const command = join(root, "bin", "cartwheel");

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

/** What a demo says of itself in demo.json. */
export interface DemoState {
  geo_config: { pid: number };
  console: { url: string; pid: number };
  sites: { name: string; node: string; node_pid: number }[];
}

/** What runs, as the demo says now. */
export function demoState(): DemoState {
  return JSON.parse(readFileSync(join(process.env["CARTWHEEL_E2E_FOLDER"] ?? "", "cartwheel-demo", "demo.json"), "utf8")) as DemoState;
}

/** Waits until the demo prints its line "ready", and returns all that it has printed. */
function ready(child: ChildProcess, limit: number): Promise<string> {
  return new Promise((done, failed) => {
    let said = "";
    const timer = setTimeout(() => failed(new Error(`not ready within ${limit} ms: ${said}`)), limit);
    const hear = (chunk: Buffer) => {
      said += chunk.toString();
      if (!/^ready/m.test(said)) return;
      clearTimeout(timer);
      done(said);
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
  const stop = async () => {
    await end(demo);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const said = await ready(demo, 60_000);
    const link = /^ +(http\S+\/sign-in#link=\S+)$/m.exec(said)?.[1];
    if (!link) throw new Error(`the demo prints no sign-in link: ${said}`);
    process.env["CARTWHEEL_E2E_LINK"] = link;
    process.env["CARTWHEEL_E2E_ADDRESS"] = demoState().console.url;
    const secret = join(folder, "password");
    writeFileSync(secret, `${password}\n`);
    for (const role of accounts) {
      cartwheel("account", "add", role, "--role", role);
      cartwheel("account", "password", role, "--file", secret);
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}
