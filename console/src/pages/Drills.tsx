import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Drill } from "../api/generated";
import { queries } from "../api/queries";
import { count, millis, plural, shortId } from "../format";
import { Page } from "../shell/Page";
import { CsvButtons } from "../ui/Csv";
import { Age, Card, Code, Command, Pill, type Tone } from "../ui/kit";
import { Empty, sentence, Shown } from "../ui/states";
import { type Column, Table } from "../ui/Table";
import { axis, height, line, type Measure, plot, points, subject } from "./recovery";

const ends: Record<Drill["stopped"], { tone: Tone; word: string }> = {
  time: { tone: "ok", word: "Went as planned" },
  interrupted: { tone: "idle", word: "Interrupted" },
  pause: { tone: "warn", word: "Pause too long" },
  wrong: { tone: "bad", word: "Wrong answer" },
  members: { tone: "bad", word: "No member left" },
  node: { tone: "warn", word: "Another node failed" },
};

const columns: Column<Drill>[] = [
  { id: "started", name: "Began", value: (d) => d.started_at, cell: (d) => <Age at={d.started_at} /> },
  { id: "what", name: "What failed", value: subject, cell: (d) => <>{subject(d)}{d.node ? <>, <Link to="/nodes/$id" params={{ id: d.node }} className="link" title={d.node}><Code>{shortId(d.node)}</Code></Link></> : null}</> },
  { id: "end", name: "End", value: (d) => d.stopped, cell: (d) => <><Pill tone={ends[d.stopped].tone}>{ends[d.stopped].word}</Pill>{d.stopped === "time" ? null : <span className="block min-w-48 text-soft">{sentence(d.reason)}</span>}</> },
  { id: "write", name: "Writes paused", figure: true, value: (d) => d.write_pause_ms, cell: (d) => millis(d.write_pause_ms) },
  { id: "read", name: "Reads paused", figure: true, value: (d) => d.read_pause_ms, cell: (d) => millis(d.read_pause_ms) },
  { id: "lost", name: "Lost", figure: true, value: (d) => d.lost, cell: (d) => (d.lost > 0 ? <Pill tone="bad">{count(d.lost)}</Pill> : "0") },
  { id: "writes", name: "Acknowledged", figure: true, value: (d) => d.acknowledged, cell: (d) => count(d.acknowledged) },
  { id: "whole", name: "Whole again after", figure: true, value: (d) => d.whole_ms, cell: (d) => millis(d.whole_ms) },
  { id: "lasted", name: "Lasted", figure: true, value: (d) => d.lasted_ms, cell: (d) => millis(d.lasted_ms) },
  { id: "who", name: "Who", value: (d) => d.who, cell: (d) => d.who },
];

/** The drills that are over: what failures cost, measured. */
export function Drills() {
  const drills = useQuery(queries.drills());
  return (
    <Page title="Drills" purpose="Failures that were made on purpose, and for how long reads and writes paused." actions={drills.data ? <CsvButtons name="drills" columns={columns} rows={drills.data.items} /> : null}>
      <Shown query={drills} what="the drills" rows={6}>
        {(list) =>
          list.items.length === 0 ? (
            <Card>
              <Empty title="No drill yet" action={<Command>cartwheel drill --kill-active / --dry-run</Command>}>
                A drill fails a part of the cluster for a short time, and measures what clients notice. It is begun from a shell.
              </Empty>
            </Card>
          ) : (
            <>
              <Recovery drills={list.items} />
              <Card title="All drills" flush>
                <Table label="Drills" header="what" columns={columns} rows={list.items} rowKey={(d) => d.id} />
              </Card>
            </>
          )
        }
      </Shown>
    </Page>
  );
}

const measures: { of: Measure; name: string; look: string; dash?: string }[] = [
  { of: "write_pause_ms", name: "Writes", look: "text-accent" },
  { of: "read_pause_ms", name: "Reads", look: "text-soft", dash: "5 4" },
];

/** The recovery times of all drills as lines, with a cross where something was lost. */
export function Recovery({ drills }: { drills: Drill[] }) {
  const [lit, setLit] = useState<Drill>();
  const steps = axis(Math.max(...drills.map((d) => Math.max(d.write_pause_ms, d.read_pause_ms))));
  const top = steps.at(-1)!;
  const lost = drills.reduce((n, d) => n + d.lost, 0);
  return (
    <Card title="Recovery time and point" flush aside={<span role="status">{lit ? `${subject(lit)}: writes ${millis(lit.write_pause_ms)}, reads ${millis(lit.read_pause_ms)}, ${count(lit.lost)} lost` : lost > 0 ? `${plural(lost, "write")} lost in all` : "nothing was ever lost"}</span>}>
      <svg viewBox={`0 0 ${plot.width} ${plot.height}`} role="img" aria-label={`Pauses of ${plural(drills.length, "drill")}, from the oldest to the newest; the table below has the same`} className="block max-h-80 w-full px-2 pb-2">
        {steps.map((s) => (
          <g key={s} transform={`translate(0 ${height(s, top)})`}>
            <path d={`M${plot.left} 0H${plot.width - plot.right}`} className="stroke-line" />
            <text x={plot.left - 8} y="4" textAnchor="end" className="fill-faint text-[11px]">{millis(s)}</text>
          </g>
        ))}
        {measures.map((m) => {
          const at = points(drills, m.of, top);
          return (
            <g key={m.of} className={m.look}>
              <path d={line(at)} fill="none" stroke="currentColor" strokeWidth="1.8" strokeDasharray={m.dash} />
              {at.map((p) => (
                <g key={p.drill.id} transform={`translate(${p.x} ${p.y})`} onPointerEnter={() => setLit(p.drill)} onPointerLeave={() => setLit(undefined)}>
                  <circle r="9" fill="transparent" />
                  <circle r="3.5" fill="currentColor" className="stroke-surface" />
                </g>
              ))}
            </g>
          );
        })}
        {points(drills, "write_pause_ms", top).filter((p) => p.drill.lost > 0).map((p) => (
          <path key={p.drill.id} data-testid="lost" transform={`translate(${p.x} ${p.y})`} d="M-7-7l14 14M7-7l-14 14" stroke="currentColor" strokeWidth="2.4" className="text-bad" />
        ))}
        {measures.map((m, i) => (
          <g key={m.of} transform={`translate(${plot.left + i * 90} ${plot.height - 8})`} className={m.look}>
            <path d="M0-4h22" stroke="currentColor" strokeWidth="1.8" strokeDasharray={m.dash} />
            <text x="28" className="fill-faint text-[11px]">{m.name}</text>
          </g>
        ))}
      </svg>
    </Card>
  );
}
