import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { mockApi } from "./src/mock/plugin.ts";

// The API's address while developing: a node's own, or the gateway's.
const api = process.env["CARTWHEEL_API"] ?? "http://127.0.0.1:7080";

function proxied(mode: string): Record<string, string> {
  return mode === "mock" ? {} : { "/api": api, "/files": api, "/properties": api };
}

export default defineConfig(({ mode }) => ({
  plugins: [react(), tailwindcss(), ...(mode === "mock" ? [mockApi()] : [])],
  build: { target: "es2023", chunkSizeWarningLimit: 700, sourcemap: false, assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  server: { port: 5173, proxy: proxied(mode) },
  preview: { port: 4173, proxy: proxied(mode) },
  test: { environment: "happy-dom", include: ["src/**/*.test.{ts,tsx}"] },
}));
