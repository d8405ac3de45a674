import { describe, expect, it } from "vitest";
import { fileAddress, modeWords, windowsTrouble } from "./tree";

describe("modes", () => {
  it.each([
    ["0644", "rw-r--r--"],
    ["0755", "rwxr-xr-x"],
    ["1777", "rwxrwxrwt"],
    ["6744", "rwsr-Sr--"],
    ["0000", "---------"],
  ])("%s is %s", (octal, words) => expect(modeWords(octal)).toBe(words));
});

describe("names on Windows", () => {
  it.each(["a:b", "what?", "ends.", "ends ", "con", "LPT1.txt", "tab\there", "back\\slash"])("%j has to be mapped", (name) => expect(windowsTrouble(name)).toBeDefined());
  it.each(["hello.txt", "console", ".profile", "com10", "Über"])("%j is well", (name) => expect(windowsTrouble(name)).toBeUndefined());
});

describe("addresses", () => {
  it("keep each name whole", () => expect(fileAddress("/a b/c?d#e")).toBe("/files/a%20b/c%3Fd%23e"));
});
