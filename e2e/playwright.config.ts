import { defineConfig } from "@playwright/test";

// The console in Chromium against a real cluster: cluster.ts starts a demo of
// three sites, whose gateway serves the console.
export default defineConfig({
  testDir: "tests",
  globalSetup: "./cluster.ts",
  outputDir: process.env["CARTWHEEL_E2E_OUTPUT"] ?? "../test-results/e2e",
  workers: 1, // one cluster, whose nodes some tests end
  fullyParallel: false,
  timeout: 60_000,
  expect: { timeout: 15_000 },
  reporter: [["line"]],
  use: {
    baseURL: process.env["CARTWHEEL_E2E_ADDRESS"] ?? "", // cluster.ts sets it before the first worker
    locale: "en-GB",
    timezoneId: "UTC",
    viewport: { width: 1280, height: 900 },
    trace: "retain-on-failure",
    launchOptions: { executablePath: process.env["CARTWHEEL_CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] },
  },
});
