import { useQueries } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { base } from "../api/call";
import type { Run } from "../api/generated";
import { queries } from "../api/queries";
import { figure, span, unknown } from "../format";
import { Page } from "../shell/Page";
import { CsvButtons } from "../ui/Csv";
import { Age, Button, Card, Code, Mark } from "../ui/kit";
import { Empty, Failure, Skeleton } from "../ui/states";
import { type Column, Table } from "../ui/Table";
import { bounds, type ComparedRow, type ComparedTable, compare, difference } from "./comparison";

/** Runs beside one another. The first one chosen is what the others differ from. */
export function Compare({ names, column }: { names: string[]; column: string | undefined }) {
  const asked = useQueries({ queries: names.map((name) => queries.experiment(name)) });
  const navigate = useNavigate({ from: "/experiments" });
  const runs = asked.flatMap((q) => q.data ?? []);
  const failed = asked.flatMap((q, i) => (q.error && !q.data ? [{ name: names[i]!, error: q.error, retry: () => void q.refetch() }] : []));
  return (
    <Page
      title="Compare runs"
      trail={[{ name: "Experiments", to: "/experiments" }]}
      purpose={`What the others differ by is against ${names[0]}.`}
      actions={<Button onClick={() => void navigate({ search: (s) => ({ ...s, compare: undefined, column: undefined }) })}>Choose others</Button>}
    >
      {failed.map((f) => (
        <Card key={f.name}><Failure error={f.error} what={`the run ${f.name}`} retry={f.retry} /></Card>
      ))}
      {runs.length + failed.length < names.length ? <Skeleton rows={8} label="Loading the runs" /> : runs.length < bounds.least ? null : <Body runs={runs} column={column} choose={(c) => void navigate({ search: (s) => ({ ...s, column: c }), replace: true })} />}
    </Page>
  );
}

function Body({ runs, column, choose }: { runs: Run[]; column: string | undefined; choose: (column: string | undefined) => void }) {
  const { words, tables, figures } = useMemo(() => compare(runs), [runs]);
  const all = [...new Set(tables.flatMap((t) => t.rows.map((r) => r.column)))];
  const shown = tables.map((t) => ({ ...t, rows: t.rows.filter((r) => !column || r.column === column) })).filter((t) => t.rows.length > 0);
  return (
    <>
      {words.length > 0 ? (
        <ul role="status" aria-label="What bounds the comparison" className="flex flex-col gap-1 rounded-[10px] border border-line bg-warn-wash px-4 py-2.5 text-warn">
          {words.map((w) => <li key={w} className="flex items-baseline gap-2"><Mark tone="warn" size={9} />{w}</li>)}
        </ul>
      ) : null}
      <Card title="The runs" flush><SetUps runs={runs} /></Card>
      {tables.length > 0 ? (
        <label className="flex items-center gap-1.5 text-soft">
          Figures
          <select className="field" value={column ?? ""} onChange={(e) => choose(e.target.value || undefined)}>
            <option value="">all</option>
            {all.map((c) => <option key={c}>{c}</option>)}
          </select>
        </label>
      ) : null}
      {shown.map((t) => <Compared key={t.name} table={t} runs={runs} />)}
      {column && tables.length > 0 && shown.length === 0 ? <Card><Empty title="No table has these figures" action={<Button onClick={() => choose(undefined)}>Show all</Button>} /></Card> : null}
      {figures.map((f) => (
        <Card key={f.title} title={f.title}>
          <div className="grid grid-cols-1 gap-4 lg:grid-cols-2">
            {runs.map((r, i) => (
              <figure key={r.name} className="min-w-0">
                <figcaption className="pb-1 text-soft wrap-anywhere">{r.name}</figcaption>
                {f.files[i] ? <img className="w-full bg-white" alt={`${f.title}, of ${r.name}`} src={`${base}/experiments/${encodeURIComponent(r.name)}/figures/${encodeURIComponent(f.files[i])}`} /> : <p className="text-faint">This run has no such figure.</p>}
              </figure>
            ))}
          </div>
        </Card>
      ))}
    </>
  );
}

/** How each run was made: each is a row. */
function SetUps({ runs }: { runs: Run[] }) {
  const columns: Column<Run>[] = [
    { id: "name", name: "Run", value: (r) => r.name, cell: (r) => <Link to="/experiments/$run" params={{ run: r.name }} className="link">{r.name}</Link> },
    { id: "experiment", name: "Experiment", value: (r) => r.experiment, cell: (r) => r.experiment ?? unknown },
    { id: "state", name: "State", value: (r) => r.state, cell: (r) => r.state },
    { id: "started", name: "Started", value: (r) => r.started_at, cell: (r) => <Age at={r.started_at} /> },
    { id: "took", name: "Took", figure: true, value: (r) => r.took_ms, cell: (r) => span(r.took_ms) },
    { id: "topology", name: "Topology", value: (r) => r.topology, cell: (r) => r.topology ?? "none" },
    { id: "seed", name: "Seed", figure: true, value: (r) => r.seed, cell: (r) => r.seed ?? unknown },
    { id: "version", name: "Revision", value: (r) => r.version, cell: (r) => <Code>{r.version ?? unknown}</Code> },
    { id: "arguments", name: "Command", value: (r) => r.arguments.join(" "), cell: (r) => <Code>{r.arguments.join(" ")}</Code> },
  ];
  return <Table label="The runs" columns={columns} rows={runs} rowKey={(r) => r.name} />;
}

function Compared({ table, runs }: { table: ComparedTable; runs: Run[] }) {
  const columns: Column<ComparedRow>[] = [
    { id: "row", name: "Row", value: (r) => r.row, cell: (r) => r.row },
    { id: "column", name: "Figure", value: (r) => r.column, cell: (r) => r.column },
    ...runs.map((run, i): Column<ComparedRow> => ({ id: `run${i}`, name: run.name, figure: true, value: (r) => r.cells[i], cell: (r) => <Value cells={r.cells} i={i} /> })),
  ];
  const apart = runs.slice(1).map((run, i): Column<ComparedRow> => ({ id: `difference${i}`, name: `${run.name}, less the first`, value: (r) => difference(r.cells[0], r.cells[i + 1])?.by, cell: () => null }));
  return (
    <Card title={table.title} flush aside={<CsvButtons name={`compare ${table.name}`} columns={[...columns, ...apart]} rows={table.rows} />}>
      <Table label={table.title} columns={columns} rows={table.rows} rowKey={(r) => `${r.row}\n${r.column}`} />
    </Card>
  );
}

/** One run's figure, with what it differs by below. */
function Value({ cells, i }: { cells: ComparedRow["cells"]; i: number }) {
  const [first, own] = [cells[0], cells[i]];
  const d = i > 0 ? difference(first, own) : undefined;
  return (
    <>
      {own === undefined ? <span className="text-faint">not there</span> : figure(own)}
      {d ? <span className="block text-[0.86rem] whitespace-nowrap text-soft">{d.by === 0 ? "the same" : `${signed(d.by)}${d.percent === undefined ? "" : `, ${signed(d.percent)} %`}`}</span> : null}
      {i > 0 && typeof own === "string" && first !== undefined && own !== first ? <span className="block text-[0.86rem] text-soft">another</span> : null}
    </>
  );
}

function signed(n: number): string {
  return `${n > 0 ? "+" : n < 0 ? "−" : ""}${figure(Math.abs(n))}`;
}
