import { renderHook } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { useShortcuts } from "./shortcuts";

/** Presses a key at a time, in milliseconds since the page was opened. */
function press(key: string, at: number): void {
  const e = new KeyboardEvent("keydown", { key, bubbles: true });
  Object.defineProperty(e, "timeStamp", { value: at });
  document.body.dispatchEvent(e);
}

function listen() {
  const handlers = { search: vi.fn(), sheet: vi.fn(), go: vi.fn() };
  const { unmount } = renderHook(() => useShortcuts(handlers));
  leave = unmount;
  return handlers;
}

let leave = () => {};
afterEach(() => leave());

test("keys count from the first moment of a page", () => {
  const { go } = listen();
  press("l", 100); // no g came before
  expect(go).not.toHaveBeenCalled();
  press("g", 1150); // the page is younger than the time between two keys
  press("l", 1250);
  expect(go.mock.calls).toEqual([["/slices"]]);
});

test("a letter that comes late, or after another key, goes nowhere", () => {
  const { go } = listen();
  press("g", 5000);
  press("l", 6300);
  press("g", 7000);
  press("z", 7100);
  press("l", 7200);
  expect(go).not.toHaveBeenCalled();
});

test("single keys work at once, too", () => {
  const { sheet } = listen();
  press("?", 100);
  expect(sheet).toHaveBeenCalledOnce();
});
