import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useRef, useState } from "react";
import type { Network as NetworkData } from "../api/model";
import { queries } from "../api/queries";
import { millis, plural, shortId, span } from "../format";
import { type Cell, type Mode, matrixOf, valueOf } from "../geo/matrix";
import { Page } from "../shell/Page";
import { CsvButtons } from "../ui/Csv";
import { Card, Facts, Pill } from "../ui/kit";
import { Empty, Shown } from "../ui/states";
import type { Column } from "../ui/Table";
import { Probe } from "./Probe";
import { Scatter } from "./Scatter";

const modes: [Mode, string, string][] = [
  ["measured", "Measured", "What nodes measured: the round trip, smoothed."],
  ["predicted", "Predicted", "What the nodes' coordinates say."],
  ["difference", "Difference", "Predicted minus measured: how wrong the coordinates are."],
];

/** The distances between sites and nodes. */
export function Network() {
  const network = useQuery({ ...queries.network(), refetchInterval: 10_000 });
  const { tab, mode, by } = useSearch({ from: "/shell/network" });
  const navigate = useNavigate({ from: "/network" });
  const set = (part: { tab?: "matrix" | "coordinates"; mode?: Mode; by?: "site" | "node" }) => void navigate({ search: (s) => ({ ...s, ...part }), replace: true });
  return (
    <Page title="Network" purpose={tab === "coordinates" ? "Where each node stands in the space from which round trips are predicted." : modes.find(([m]) => m === mode)?.[2]}>
      <div className="flex flex-wrap items-center gap-3">
        <Switch label="View" value={tab} options={[["matrix", "Matrix"], ["coordinates", "Coordinates"]]} set={(v) => set({ tab: v })} />
        {tab === "matrix" ? (
          <>
            <Switch label="Mode" value={mode} options={modes.map(([m, name]) => [m, name])} set={(v) => set({ mode: v })} />
            <Switch label="Rows" value={by} options={[["site", "By site"], ["node", "By node"]]} set={(v) => set({ by: v })} />
          </>
        ) : null}
      </div>
      <Shown query={network} what="the network" rows={8}>
        {(n) =>
          n.nodes.length < 2 ? (
            <Card>
              <Empty title="One node has no distance">The second node makes a network.</Empty>
            </Card>
          ) : tab === "coordinates" ? (
            <Scatter nodes={n.nodes} />
          ) : (
            <>
              <Matrix network={n} mode={mode} by={by} />
              <Probe nodes={n.nodes} />
            </>
          )
        }
      </Shown>
    </Page>
  );
}

/** Buttons of which one is on. */
export function Switch<T extends string>({ label, value, options, set }: { label: string; value: T; options: [T, string][]; set: (v: T) => void }) {
  return (
    <div role="group" aria-label={label} className="flex rounded-lg border border-line bg-surface p-0.5">
      {options.map(([v, name]) => (
        <button key={v} type="button" aria-pressed={v === value} onClick={() => set(v)} className={`min-h-7 rounded-md px-3 ${v === value ? "bg-accent-wash font-medium text-accent" : "text-soft hover:text-ink"}`}>
          {name}
        </button>
      ))}
    </div>
  );
}

/** What the matrix is as a file: each way is one row. */
const cellColumns: Column<Cell>[] = [
  { id: "from", name: "from", value: (c) => c.from, cell: (c) => c.from },
  { id: "to", name: "to", value: (c) => c.to, cell: (c) => c.to },
  { id: "measured", name: "measured_ms", value: (c) => c.measured, cell: (c) => millis(c.measured) },
  { id: "predicted", name: "predicted_ms", value: (c) => c.predicted, cell: (c) => millis(c.predicted) },
];

function Matrix({ network, mode, by }: { network: NetworkData; mode: Mode; by: "site" | "node" }) {
  const m = useMemo(() => matrixOf(network, by), [network, by]);
  const [at, setAt] = useState<[number, number]>([0, 1]);
  const body = useRef<HTMLTableSectionElement>(null);
  const last = m.names.length - 1;
  const row = Math.min(at[0], last);
  const column = Math.min(at[1], last);
  const cell = m.cells[row]![column]!;
  const go = (r: number, c: number) => {
    setAt([r, c]);
    body.current?.querySelector<HTMLElement>(`[data-at="${r} ${c}"]`)?.focus();
  };
  const press = (e: React.KeyboardEvent) => {
    const steps: Record<string, [number, number]> = { ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1], Home: [row, 0], End: [row, last] };
    const to = steps[e.key];
    if (!to) return;
    e.preventDefault();
    go(Math.max(0, Math.min(last, to[0])), Math.max(0, Math.min(last, to[1])));
  };
  const short = (name: string) => (by === "node" ? shortId(name) : name);
  return (
    <div className="grid grid-cols-1 items-start gap-5 xl:grid-cols-[minmax(0,1fr)_21rem]">
      <Card title={by === "site" ? `${plural(m.names.length, "site")}, median of their nodes` : plural(m.names.length, "node")} aside={<CsvButtons name="network" columns={cellColumns} rows={m.cells.flat()} />} flush>
        <div className="overflow-x-auto p-4 pt-0">
          <table role="grid" aria-label={`Round trips, ${mode}`} className="border-separate border-spacing-[3px]" onKeyDown={press}>
            <thead>
              <tr>
                <td className="pr-3 text-[0.86rem] text-faint">from ↓ to →</td>
                {m.names.map((name) => (
                  <th key={name} scope="col" title={name} className="max-w-28 truncate px-1 pb-1 text-[0.86rem] font-medium text-soft">
                    {short(name)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody ref={body}>
              {m.cells.map((cells, r) => (
                <tr key={m.names[r]}>
                  <th scope="row" title={m.names[r]} className="max-w-40 truncate pr-3 text-left font-medium">
                    {short(m.names[r]!)}
                  </th>
                  {cells.map((c, i) => (
                    <Value key={m.names[i]} cell={c} mode={mode} at={`${r} ${i}`} focus={r === row && i === column} choose={() => setAt([r, i])} />
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
          <Legend mode={mode} />
        </div>
      </Card>
      <Card title={`${short(cell.from)} → ${short(cell.to)}`}>
        <Facts
          items={[
            ["Measured", millis(cell.measured)],
            ["Back", millis(m.cells[column]![row]!.measured)],
            ["Least ever", millis(cell.least)],
            ["Predicted", millis(cell.predicted)],
            ["Difference", signed(valueOf(cell, "difference"))],
            ["Path", cell.from === cell.to && by === "node" ? "itself" : cell.paths.length > 0 ? cell.paths.join(", ") : <Pill key="p" tone="bad">no connection</Pill>],
            ["Newest measurement", cell.age === undefined ? "never" : `${span(cell.age)} ago`],
          ]}
        />
      </Card>
    </div>
  );
}

function signed(ms: number | undefined): string {
  return ms === undefined ? millis(undefined) : `${ms > 0 ? "+" : ms < 0 ? "−" : ""}${millis(Math.abs(ms))}`;
}

/** How strong a cell's colour is, 0 to 1, on a scale of logarithms from 1 ms to 400 ms. */
function heat(ms: number): number {
  return Math.max(0, Math.min(1, Math.log(Math.max(1, ms)) / Math.log(400)));
}

function Value({ cell, mode, at, focus, choose }: { cell: Cell; mode: Mode; at: string; focus: boolean; choose: () => void }) {
  const self = cell.from === cell.to;
  const v = valueOf(cell, mode);
  const failed = v === undefined && cell.known && cell.paths.length === 0;
  const shown = v === undefined ? (self ? "·" : failed ? "✕" : "?") : mode === "difference" ? signed(v) : millis(v);
  const spoken = `${cell.from} to ${cell.to}: ${v === undefined ? (self ? "the same" : failed ? "no connection" : "not known") : shown}`;
  const strength = v === undefined ? 0 : mode === "difference" ? Math.min(1, Math.abs(v) / 60) : heat(v);
  const hue = mode === "difference" && (v ?? 0) < 0 ? "var(--warn)" : "var(--heat)";
  return (
    <td
      role="gridcell"
      data-at={at}
      data-testid={`cell-${cell.from}-${cell.to}`}
      tabIndex={focus ? 0 : -1}
      aria-label={spoken}
      aria-selected={focus}
      onFocus={choose}
      onClick={choose}
      className={`h-9 min-w-[4.600rem] cursor-default rounded-md px-2 text-center ${failed ? "text-bad" : v === undefined ? "text-faint" : ""} ${focus ? "ring-2 ring-accent" : ""}`}
      style={{ background: v === undefined ? "var(--sunk)" : `color-mix(in oklab, ${hue} ${5 + strength * 60}%, var(--surface))` }}
    >
      {shown}
    </td>
  );
}

function Legend({ mode }: { mode: Mode }) {
  const steps = mode === "difference" ? [-60, -20, 0, 20, 60] : [1, 5, 20, 80, 300];
  return (
    <div className="mt-3 flex flex-wrap items-center gap-x-4 gap-y-1 text-[0.86rem] text-faint">
      {steps.map((s) => {
        const strength = mode === "difference" ? Math.abs(s) / 60 : heat(s);
        return (
          <span key={s} className="flex items-center gap-1.5">
            <span className="size-3 rounded-sm" style={{ background: `color-mix(in oklab, ${mode === "difference" && s < 0 ? "var(--warn)" : "var(--heat)"} ${5 + strength * 60}%, var(--surface))` }} />
            {mode === "difference" ? signed(s) : millis(s)}
          </span>
        );
      })}
      <span>? not known</span>
      <span>✕ no connection</span>
    </div>
  );
}
