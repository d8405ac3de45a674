import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { drills } from "../mock/cluster";
import { Recovery } from "./Drills";

afterEach(cleanup);

test("drills that lost nothing say so, and have no cross", () => {
  render(<Recovery drills={drills.map((d) => ({ ...d, lost: 0 }))} />);
  screen.getByRole("img", { name: `Pauses of ${drills.length} drills, from the oldest to the newest; the table below has the same` });
  expect(screen.getByRole("status").textContent).toBe("nothing was ever lost");
  expect(screen.queryAllByTestId("lost")).toHaveLength(0);
});

test("a drill that lost something has a cross", () => {
  render(<Recovery drills={drills.map((d, i) => ({ ...d, lost: i === 1 ? 2 : 0 }))} />);
  expect(screen.getByRole("status").textContent).toBe("2 writes lost in all");
  expect(screen.queryAllByTestId("lost")).toHaveLength(1);
});
