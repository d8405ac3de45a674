import { expect, test } from "vitest";
import { Parser } from "./source";

function parse(...parts: string[]): string[] {
  const out: string[] = [];
  const parser = new Parser((name, data, id) => out.push(`${name}|${data}|${id}`));
  for (const part of parts) parser.take(part);
  return out;
}

test("events come out whole wherever the text is cut", () => {
  const text = ": alive\n\nid: a-1\nevent: revision\ndata: {\"revision\":3}\n\nid: a-2\nevent: gap\ndata: {}\n\n";
  const whole = parse(text);
  expect(whole).toEqual(["heartbeat|{}|", 'revision|{"revision":3}|a-1', "gap|{}|a-2"]);
  for (let i = 1; i < text.length; i++) expect(parse(text.slice(0, i), text.slice(i))).toEqual(whole);
});

test("an endless event is refused", () => {
  expect(() => parse("x".repeat((1 << 20) + 1))).toThrow("too long");
});
