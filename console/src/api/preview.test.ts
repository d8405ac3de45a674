import { describe, expect, it } from "vitest";
import { beginning, isPicture, textOf } from "./preview";

const bytes = (text: string) => new TextEncoder().encode(text);

describe("what is text", () => {
  it("is shown as it is, whatever it means elsewhere", () => expect(textOf(bytes("<b>ä\n</b>"), false)).toBe("<b>ä\n</b>"));
  it("may be empty", () => expect(textOf(bytes(""), false)).toBe(""));
  it("may be cut within a character", () => expect(textOf(bytes("wheel ä").subarray(0, 7), true)).toBe("wheel "));
  it("ends with a whole character where nothing is cut", () => expect(textOf(bytes("wheel ä").subarray(0, 7), false)).toBeUndefined());
  it.each([["a NUL", [119, 0, 104]], ["no UTF-8", [137, 80, 78, 71]]])("has not %s", (_, list) => expect(textOf(new Uint8Array(list), false)).toBeUndefined());
});

describe("the beginning of a file", () => {
  it("is all of a short one", async () => expect(await beginning(new Response("wheel"), 5)).toEqual({ text: "wheel", cut: false }));
  it("is all of an empty one", async () => expect(await beginning(new Response(null), 5)).toEqual({ text: "", cut: false }));
  it("ends at the limit, whatever the server sends", async () => expect(await beginning(new Response("wheels"), 5)).toEqual({ text: "wheel", cut: true }));
  it("knows by the range that there is more", async () =>
    expect(await beginning(new Response("wheel", { status: 206, headers: { "Content-Range": "bytes 0-4/70000" } }), 5)).toEqual({ text: "wheel", cut: true }));
});

describe("pictures", () => {
  it.each(["a.png", "B.JPG", "c.jpeg", "d.gif", "e.webp", "f.svg"])("%s is one", (name) => expect(isPicture(name)).toBe(true));
  it.each(["a.png.txt", "png", "a.html", "a.tiff"])("%s is none", (name) => expect(isPicture(name)).toBe(false));
});
