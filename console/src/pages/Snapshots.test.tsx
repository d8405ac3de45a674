import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, expect, test, vi } from "vitest";
import type { Role } from "../api/session";
import { schedules, scrubs, snapshots, space } from "../mock/cluster";
import { Counted } from "./PastSpace";
import { doing, Report } from "./Scrub";
import { DeleteSnapshot, NewSchedule, NewSnapshot } from "./SnapshotForms";

const sent: { what: string; match: string | null; body: unknown }[] = [];

/** Renders a part of the page for an account of a role. Changes are answered by this status. */
function shown(role: Role, part: ReactNode, status = 200): void {
  vi.stubGlobal("fetch", async (request: Request) => {
    const json = (body: object, code = 200) => new Response(JSON.stringify(body), { status: code, headers: { "Content-Type": code === 200 ? "application/json" : "application/problem+json" } });
    const path = new URL(request.url).pathname;
    if (path.endsWith("/session")) return json({ account: "anna", role, csrf: "x", has_password: true, degraded: false });
    const text = await request.text();
    sent.push({ what: `${request.method} ${path.slice("/api/v1".length)}`, match: request.headers.get("If-Match"), body: text ? JSON.parse(text) : undefined });
    if (status !== 200) return json({ type: "about:blank", title: "Conflict", status, detail: "a snapshot of this name was made just now: choose another name", code: "exists", request_id: "r" }, status);
    return json(path.endsWith("/snapshots") ? { ...snapshots[2]!, name: "nightly" } : path.endsWith("/space") ? { ...space, counting: { began_at: space.freshness.as_of_at, slices: 40, done: 12 } } : { subject: "records/snapshot/nightly" });
  });
  render(<QueryClientProvider client={new QueryClient({ defaultOptions: { mutations: { retry: false } } })}>{part}</QueryClientProvider>);
}

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  sent.length = 0;
});

const write = (label: string, text: string) => fireEvent.change(screen.getByLabelText(label), { target: { value: text } });

test("a snapshot's name is checked before it is sent, and what was made is said", async () => {
  shown("administrator", <NewSnapshot snapshots={snapshots} schedules={schedules} />);
  const button = () => screen.getByRole("button", { name: /^Keep the tree as it is now/ });
  write("Name of the new snapshot", "before-upgrade");
  await screen.findByText("Not now: before-upgrade is a snapshot already.");
  fireEvent.click(button());
  fireEvent.submit(screen.getByRole("form", { name: "New snapshot" }));
  write("Name of the new snapshot", "nightly");
  write("For how long it is kept", "a month");
  screen.getByText(/^Not now: keep it for an age/);
  fireEvent.submit(screen.getByRole("form", { name: "New snapshot" }));
  expect(sent).toEqual([]);
  write("For how long it is kept", "30d");
  await waitFor(() => expect(button().getAttribute("aria-disabled")).toBeNull());
  screen.getByTitle("cartwheel snapshot create nightly --keep 30d");
  fireEvent.submit(screen.getByRole("form", { name: "New snapshot" }));
  expect((await screen.findByRole("status")).textContent).toContain("nightly is kept");
  expect(sent).toEqual([{ what: "POST /snapshots", match: null, body: { name: "nightly", keep_ms: 2_592_000_000 } }]);
});

test("a name that another took meanwhile is refused with the node's words", async () => {
  shown("administrator", <NewSnapshot snapshots={[]} schedules={[]} />, 409);
  write("Name of the new snapshot", "nightly");
  fireEvent.submit(screen.getByRole("form", { name: "New snapshot" }));
  expect((await screen.findByRole("alert")).textContent).toContain("choose another name");
});

test("who is no administrator sees the forms, and which role they need", async () => {
  shown("operator", <><NewSnapshot snapshots={[]} schedules={[]} /><NewSchedule snapshots={[]} schedules={[]} /></>);
  expect(await screen.findAllByText("Not now: needs the role administrator; you are operator.")).toHaveLength(2);
  write("Name of the new snapshot", "nightly");
  fireEvent.submit(screen.getByRole("form", { name: "New snapshot" }));
  expect(sent).toEqual([]);
});

test("a schedule is sent with its times in milliseconds", async () => {
  shown("administrator", <NewSchedule snapshots={snapshots} schedules={schedules} />);
  write("Name of the new schedule", "quarterly");
  write("every", "15m");
  write("keep each for", "5m");
  screen.getByText("Not now: keep each at least until the next one is made.");
  write("keep each for", "6h");
  fireEvent.submit(screen.getByRole("form", { name: "New schedule" }));
  await waitFor(() => expect(sent).toEqual([{ what: "POST /schedules", match: null, body: { name: "quarterly", every_ms: 900_000, keep_ms: 21_600_000 } }]));
});

test("a snapshot goes only once its name was written, and only as it was seen", async () => {
  const close = vi.fn();
  shown("administrator", <DeleteSnapshot snapshot={snapshots[2]!} close={close} />);
  await screen.findByText(/nothing else keeps is lost, at all sites/);
  const button = screen.getByRole("button", { name: /^Delete it/ });
  expect(button.textContent).toContain("write its name first");
  write("Its name, to be sure", "before-upgrad");
  fireEvent.submit(button.closest("form")!);
  expect(sent).toEqual([]);
  write("Its name, to be sure", "before-upgrade");
  fireEvent.submit(button.closest("form")!);
  await waitFor(() => expect(close).toHaveBeenCalled());
  expect(sent).toEqual([{ what: "DELETE /snapshots/before-upgrade", match: '"3000"', body: undefined }]);
});

test("the space of snapshots and of retention are told apart, with what was not counted", async () => {
  shown("operator", <Counted space={space} />);
  screen.getByText("1.09 TiB"); // snapshots alone
  screen.getByText("466 GiB"); // retention alone
  screen.getByText("1 slice could not be counted, and is in no figure.");
  fireEvent.click(await screen.findByRole("button", { name: "Count now" }));
  await waitFor(() => expect(sent.map((s) => s.what)).toEqual(["POST /space"]));
});

test("a count under way says how far it is, and is not begun anew", () => {
  shown("operator", <Counted space={{ ...space, count: undefined, counting: { began_at: space.freshness.as_of_at, slices: 40, done: 12 } } as typeof space} />);
  expect(screen.getByRole("status").textContent).toBe("Counting: 12 of 40 slices");
  expect(screen.getByRole("button", { name: "Count now" }).getAttribute("aria-busy")).toBe("true");
  expect(screen.getByText(/^The figures come/)).toBeDefined();
});

test("a scrub's report says what is lost, and who sees which chunk", () => {
  const lost = scrubs.find((s) => s.report?.lost_chunks)!.report!;
  shown("administrator", <Report report={lost} />);
  screen.getByText("1 chunk lost");
  expect(screen.getByRole("list", { name: "Lost chunks" }).textContent).toContain("8f0c2a of slice 41, in objects 41/7; a member that may have it does not answer");
  cleanup();
  const { lost: _, ...hidden } = lost;
  shown("viewer", <Report report={hidden} />);
  screen.getByText("Administrators see which ones.");
  cleanup();
  shown("viewer", <Report report={undefined} />);
  screen.getByText("The node has said nothing of it.");
});

test("a scrub under way says how far it is", () => {
  const running = scrubs[1]!.report!;
  expect(doing(running)).toBe("reads chunks, 42 %");
  expect(doing({ ...running, phase: "states" })).toBe("reads states");
  expect(doing({ ...running, running: false })).toBe("rests");
  expect(doing(undefined)).toBe("not known");
  shown("viewer", <Report report={running} />);
  screen.getByText("Sound");
  screen.getByText("reads chunks, 42 %, by order");
});
