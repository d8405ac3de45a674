import { expect, test } from "vitest";
import { ago, bytes, millis, plural, shortId, span, unknown } from "./format";

test("unknown values are a dash, and zero is a number", () => {
  for (const f of [millis, bytes, span]) {
    expect(f(undefined)).toBe(unknown);
    expect(f(null)).toBe(unknown);
  }
  expect(bytes(0)).toBe("0 B");
  expect(millis(0)).toBe("0 ms");
});

test("milliseconds keep two or three digits", () => {
  expect(millis(0.421)).toBe("0.42 ms");
  expect(millis(31.4)).toBe("31 ms");
  expect(millis(1432)).toBe("1.4 s");
  expect(millis(200_000)).toBe("3 min 20 s");
});

test("bytes never show 1024 of a unit", () => {
  expect(bytes(1023)).toBe("1023 B");
  expect(bytes(1024 * 1024 - 1)).toBe("1.00 MiB");
  expect(bytes(3.5 * 1024 ** 3)).toBe("3.50 GiB");
});

test("ages say their direction", () => {
  const now = Date.parse("2026-01-01T12:00:00Z");
  expect(ago("2026-01-01T11:59:48Z", now)).toBe("12 s ago");
  expect(ago("2026-01-01T12:03:00Z", now)).toBe("in 3 min");
  expect(ago("2026-01-01T12:00:00Z", now)).toBe("just now");
});

test("one is not many", () => {
  expect(plural(1, "node")).toBe("1 node");
  expect(plural(2, "copy", "copies")).toBe("2 copies");
  expect(shortId("12D3KooWAbCdEfGh")).toBe("…AbCdEfGh");
});
