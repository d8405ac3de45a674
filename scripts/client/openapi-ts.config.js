import { defineConfig } from "@hey-api/openapi-ts";

// The console's client, from the description of the API that the nodes serve.
export default defineConfig({
  input: "../../node/api/openapi.json",
  output: { path: process.env.CARTWHEEL_GENERATED ?? "../../console/src/api/generated" },
  plugins: ["@hey-api/client-fetch", "@hey-api/typescript", "@hey-api/sdk"],
  logs: { file: false },
});
