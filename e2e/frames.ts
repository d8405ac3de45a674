// Measures how smoothly Chromium scrolls the list of 100,000 slices, beside what it
// does on this machine with a page that is empty and with one of plain rows. It
// asserts nothing: a machine that is busy, or draws without a graphics card, has
// figures of its own. scripts/bench --console runs it on the built console, with
// the mock of a cluster in place of nodes.
import { loadavg, cpus } from "node:os";
import { resolve } from "node:path";
import { type CDPSession, chromium, type Page } from "@playwright/test";
import { preview } from "vite";

const [word = "5"] = process.argv.slice(2);
const seconds = Number(word);
if (word === "--help" || !(seconds >= 1 && seconds <= 60)) {
  if (word !== "--help") console.error(`bench: ${word} is no number of seconds`);
  console.error("Usage: scripts/bench --console [SECONDS]: how long each way of scrolling is measured, 1 to 60");
  process.exit(word === "--help" ? 0 : 2);
}

/** How one way of scrolling went, in milliseconds. */
interface Frames {
  frames: number;
  total: number;
  middle: number;
  late: number;
  longest: number;
}

/** Scrolls the element of a role by pixels in each frame, there and back, and times the frames. 0 pixels: nothing moves. */
function scrolled(page: Page, by: number, ms: number): Promise<Frames> {
  return page.evaluate(
    ({ by, ms }) =>
      new Promise<Frames>((done, failed) => {
        const list = document.querySelector<HTMLElement>('[role="table"]') ?? document.querySelector("main");
        const times: number[] = [];
        let step = by;
        let moved = 0;
        const tick = (now: number) => {
          times.push(now);
          if (now - times[0]! >= ms) {
            const gaps = times.slice(1).map((t, i) => t - times[i]!);
            if (by > 0 && moved < gaps.length / 2) return failed(new Error(`the list moved in ${moved} of ${gaps.length} frames only`));
            const sorted = gaps.toSorted((a, b) => a - b);
            done({ frames: gaps.length, total: now - times[0]!, middle: sorted[Math.floor(sorted.length / 2)]!, late: gaps.filter((g) => g > 25).length, longest: sorted.at(-1)! });
            return;
          }
          if (list && by > 0) {
            const before = list.scrollTop;
            list.scrollTop += step;
            if (list.scrollTop === before) step = -step;
            else moved++;
          }
          requestAnimationFrame(tick);
        };
        requestAnimationFrame(tick);
      }),
    { by, ms },
  );
}

/** Scrolls to the end again and again, until all rows have come. */
async function loadAll(page: Page, rows: number): Promise<void> {
  await page.waitForFunction(
    (rows) => {
      const list = document.querySelector('[role="table"]');
      if (!list) return false;
      list.scrollTop = list.scrollHeight;
      return list.scrollHeight > rows * 40;
    },
    rows,
    { timeout: 300_000, polling: 30 },
  );
  await page.evaluate(() => document.querySelector('[role="table"]')?.scrollTo(0, 0));
}

/** The seconds that the page's main thread has computed, without those that it waited for a processor. */
async function computed(session: CDPSession): Promise<number> {
  const { metrics } = await session.send("Performance.getMetrics");
  return metrics.find((m) => m.name === "TaskDuration")?.value ?? 0;
}

const columns: [string, number][] = [["", 44], ["frames/s", 9], ["median, ms", 11], ["longest, ms", 12], ["over 25 ms", 12], ["computed, ms/frame", 19]];
const line = (cells: string[]) => console.log(cells.map((c, i) => (i === 0 ? c.padEnd(columns[i]![1]) : c.padStart(columns[i]![1]))).join(""));

/** Measures one way of scrolling, and prints it. */
async function tell(page: Page, session: CDPSession, name: string, by: number): Promise<void> {
  const before = await computed(session);
  const f = await scrolled(page, by, seconds * 1000);
  const each = (((await computed(session)) - before) * 1000) / f.frames;
  line([name, ((f.frames / f.total) * 1000).toFixed(1), f.middle.toFixed(1), f.longest.toFixed(1), `${f.late} of ${f.frames}`, each.toFixed(2)]);
}

const plainRows = `<main style="height:600px;overflow:auto">${Array.from({ length: 2000 }, (_, i) => `<p style="height:44px;margin:0">${i}</p>`).join("")}</main>`;

async function measure(page: Page, address: string): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  console.log(`${cpus().length} CPUs, load ${loadavg()[0]!.toFixed(2)}; ${await page.evaluate(() => navigator.userAgent.match(/Chrome\/[\d.]+/)?.[0] ?? "")}`);
  line(columns.map(([name]) => name));
  await tell(page, session, "an empty page", 0);
  await page.setContent(plainRows);
  await tell(page, session, "2,000 plain rows, one row a frame", 44);
  await page.goto(`${address}slices`);
  const table = page.getByRole("table", { name: "Slices" });
  await table.getByRole("row").nth(5).waitFor();
  await tell(page, session, "slices while they load, ten rows a frame", 440);
  const total = Number(await table.getAttribute("aria-rowcount")) - 1;
  await loadAll(page, total);
  const all = `of ${total.toLocaleString("en")} slices`;
  await tell(page, session, `${all}, nothing moves`, 0);
  await tell(page, session, `${all}, a quarter row a frame`, 11);
  await tell(page, session, `${all}, one row a frame`, 44);
  await tell(page, session, `${all}, ten rows a frame`, 440);
  await tell(page, session, `${all}, a thousand rows a frame`, 44_000);
}

const server = await preview({ root: resolve(import.meta.dirname, "..", "console"), mode: "mock", logLevel: "error", preview: { port: 0, host: "127.0.0.1" } });
const browser = await chromium.launch({ executablePath: process.env["CARTWHEEL_CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
  const address = server.resolvedUrls?.local[0];
  if (!address) throw new Error("the console's preview has no address");
  await measure(await browser.newPage({ viewport: { width: 1280, height: 900 } }), address);
} finally {
  await browser.close();
  await server.close();
}
