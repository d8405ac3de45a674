import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type LiveState, Stream } from "./stream";

class Fake {
  listeners = new Map<string, (e: MessageEvent<string>) => void>();
  closed = false;
  addEventListener(type: string, f: (e: MessageEvent<string>) => void): void {
    this.listeners.set(type, f);
  }
  close(): void {
    this.closed = true;
  }
  say(type: string, data = "{}", lastEventId = ""): void {
    this.listeners.get(type)?.({ data, lastEventId } as MessageEvent<string>);
  }
}

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function begin() {
  const opened: Fake[] = [];
  const after: string[] = [];
  const states: LiveState["kind"][] = [];
  const heard: string[] = [];
  let gaps = 0;
  const stream = new Stream({
    open: (id) => {
      after.push(id);
      const fake = new Fake();
      opened.push(fake);
      return fake;
    },
    names: ["change", "heartbeat"],
    onNotice: (name) => heard.push(name),
    onGap: () => gaps++,
    onState: (s) => states.push(s.kind),
    silence: 1000,
  });
  stream.start();
  return { stream, opened, after, states, heard, gaps: () => gaps };
}

test("a lost stream resumes after its last event and counts as a gap", () => {
  const t = begin();
  t.opened[0]!.say("open");
  t.opened[0]!.say("change", "{}", "7");
  t.opened[0]!.say("error");
  expect(t.states.at(-1)).toBe("reconnecting");
  vi.advanceTimersByTime(500);
  expect(t.after).toEqual(["", "7"]);
  t.opened[1]!.say("open");
  expect(t.states.at(-1)).toBe("live");
  expect(t.gaps()).toBe(1);
  t.stream.stop();
});

test("silence is a lost connection, and heartbeats are not silence", () => {
  const t = begin();
  t.opened[0]!.say("open");
  vi.advanceTimersByTime(900);
  t.opened[0]!.say("heartbeat");
  vi.advanceTimersByTime(900);
  expect(t.states.at(-1)).toBe("live");
  vi.advanceTimersByTime(200);
  expect(t.states.at(-1)).toBe("reconnecting");
  expect(t.opened[0]!.closed).toBe(true);
  t.stream.stop();
});

test("an unreadable notice is a gap, not a failure", () => {
  const t = begin();
  t.opened[0]!.say("open");
  t.opened[0]!.say("change", "{");
  expect(t.heard).toEqual([]);
  expect(t.gaps()).toBe(1);
  t.stream.stop();
});

test("a paused stream opens no connection until it resumes", () => {
  const t = begin();
  t.opened[0]!.say("open");
  t.stream.pause();
  vi.advanceTimersByTime(60_000);
  expect(t.opened.length).toBe(1);
  t.stream.resume();
  expect(t.opened.length).toBe(2);
  expect(t.gaps()).toBe(1);
  t.stream.stop();
});
