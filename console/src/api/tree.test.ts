import { describe, expect, it } from "vitest";
import { fileAddress, inside, modeTrouble, modeWords, mounted, nameTrouble, pathTrouble, turned, windowsTrouble } from "./tree";

describe("modes", () => {
  it.each([
    ["0644", "rw-r--r--"],
    ["0755", "rwxr-xr-x"],
    ["1777", "rwxrwxrwt"],
    ["6744", "rwsr-Sr--"],
    ["0000", "---------"],
  ])("%s is %s", (octal, words) => expect(modeWords(octal)).toBe(words));
});

describe("changed modes", () => {
  it.each([
    ["0644", 0o020, "0664"],
    ["0664", 0o020, "0644"],
    ["1755", 0o001, "1754"],
    ["644", 0o400, "0244"],
  ])("%s with bit %i turned is %s", (mode, bit, want) => expect(turned(mode, bit)).toBe(want));
  it.each([["0640", "0644"], ["640", "0644"], ["0640", "4755"], ["4750", "4755"]])("%s may follow %s", (mode, now) => expect(modeTrouble(mode, now)).toBeUndefined());
  it.each([["", "0644"], ["64", "0644"], ["0689", "0644"], ["00644", "0644"], ["4755", "0755"], ["2755", "4755"]])("%j may not follow %s", (mode, now) => expect(modeTrouble(mode, now)).toBeDefined());
});

describe("names on Windows", () => {
  it.each(["a:b", "what?", "ends.", "ends ", "con", "LPT1.txt", "tab\there", "back\\slash"])("%j has to be mapped", (name) => expect(windowsTrouble(name)).toBeDefined());
  it.each(["hello.txt", "console", ".profile", "com10", "Über"])("%j is well", (name) => expect(windowsTrouble(name)).toBeUndefined());
});

describe("addresses", () => {
  it("keep each name whole", () => expect(fileAddress("/a b/c?d#e")).toBe("/files/a%20b/c%3Fd%23e"));
});

describe("names and paths", () => {
  it.each(["hello.txt", "a b", ".profile", "n".repeat(255)])("%s may be a name", (name) => expect(nameTrouble(name)).toBeUndefined());
  it.each(["", ".", "..", "a/b", "ü".repeat(128)])("%j may be none", (name) => expect(nameTrouble(name)).toBeDefined());
  it.each(["/a", "/a b/c"])("%s may be a path", (path) => expect(pathTrouble(path)).toBeUndefined());
  it.each(["", "/", "a", "/a/", "/a//b", "/a/../b"])("%j may be none", (path) => expect(pathTrouble(path)).toBeDefined());
  it("join", () => expect([inside("/", "a"), inside("/a", "b"), inside("/a/", "b")]).toEqual(["/a", "/a/b", "/a/b"]));
  it("are words of a command", () => expect([mounted("/a/b"), mounted("/it's $HOME")]).toEqual(["cartwheel/a/b", "'cartwheel/it'\\''s $HOME'"]));
});
