import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { availability } from "../mock/cluster";
import { Expected } from "./Expected";

const bodies: { assumptions: object }[] = [];

/** Renders a policy, whose questions are answered by this status, and by the mock where all is well. */
function shown(status: number): void {
  vi.stubGlobal("fetch", async (request: Request) => {
    const body = (await request.json()) as Parameters<typeof availability>[0] & { assumptions: object };
    bodies.push(body);
    const problem = { type: "about:blank", title: "Bad Request", status, detail: "16 copies on 2 nodes", code: "invalid", request_id: "r" };
    return new Response(JSON.stringify(status === 200 ? availability(body) : problem), { status, headers: { "Content-Type": status === 200 ? "application/json" : "application/problem+json" } });
  });
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Expected level={3} sites={0} stored={1000} />
    </QueryClientProvider>,
  );
}

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  bodies.length = 0;
});

test("a policy's year is shown, and follows the assumptions that a person changes", async () => {
  shown(200);
  await screen.findByText("1 min 9 s, 58 s of it in pauses");
  expect(bodies).toEqual([{ level: 3, sites: 0, stored_bytes: 1000, assumptions: {} }]);
  const failures = screen.getByLabelText(/A node goes and comes back/);
  expect(failures.getAttribute("placeholder")).toBe("6");
  fireEvent.change(failures, { target: { value: "60" } });
  await screen.findByText("9 min 53 s, 9 min 42 s of it in pauses");
  expect(bodies.at(-1)?.assumptions).toEqual({ node_failures_per_year: 60 });
  screen.getByText("Assumptions (1 change)");
  fireEvent.click(screen.getByRole("button", { name: "Back to the usual ones" }));
  await screen.findByText("1 min 9 s, 58 s of it in pauses");
});

test("a policy that cannot be says why", async () => {
  shown(400);
  expect((await screen.findByRole("alert")).textContent).toContain("16 copies on 2 nodes");
});
