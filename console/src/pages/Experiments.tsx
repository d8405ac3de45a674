import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { base, quote } from "../api/call";
import type { Run, RunSummary } from "../api/generated";
import { queries } from "../api/queries";
import { figure, plural, span } from "../format";
import { Page } from "../shell/Page";
import { CsvButtons } from "../ui/Csv";
import { Age, Button, Card, Code, Command, Facts, Pill, type Tone } from "../ui/kit";
import { Empty, sentence, Shown } from "../ui/states";
import { type Column, Table } from "../ui/Table";
import { Compare } from "./Compare";
import { bounds, toggled } from "./comparison";

const tones: Record<RunSummary["state"], Tone> = { finished: "ok", unfinished: "idle", void: "warn", damaged: "bad" };

const columns: Column<RunSummary>[] = [
  { id: "name", name: "Run", value: (r) => r.name, cell: (r) => <Link to="/experiments/$run" params={{ run: r.name }} className="link">{r.name}</Link> },
  { id: "state", name: "State", value: (r) => r.state, cell: (r) => <><Pill tone={tones[r.state]}>{r.state}</Pill>{r.reason ? <span className="block min-w-48 text-soft">{sentence(r.reason)}</span> : null}</> },
  { id: "started", name: "Started", value: (r) => r.started_at, cell: (r) => <Age at={r.started_at} /> },
  { id: "took", name: "Took", value: (r) => r.took_ms, cell: (r) => span(r.took_ms), figure: true },
  { id: "topology", name: "Topology", value: (r) => r.topology, cell: (r) => (r.topology ? `${r.topology}, ${plural(r.sites.length, "site")}` : "none") },
  { id: "seed", name: "Seed", value: (r) => r.seed, cell: (r) => r.seed ?? "–", figure: true },
  { id: "version", name: "Revision", value: (r) => r.version, cell: (r) => <Code>{r.version ?? "–"}</Code> },
  { id: "keys", name: "Key results", cell: (r) => <ul>{r.key_results.map((k, i) => <li key={i} className="whitespace-nowrap">{k.row}: {k.column} {figure(k.value)} {k.unit}</li>)}</ul> },
];

/** The boxes that choose runs to compare. A full choice stays as it is, and its empty boxes say why. */
function chosenColumn(runs: string[], choose: (run: string) => void): Column<RunSummary> {
  return {
    id: "chosen",
    name: "Compare",
    cell: (r) => {
      const isOn = runs.includes(r.name);
      const isFull = !isOn && runs.length >= bounds.most;
      return <input type="checkbox" className="size-6" aria-label={`Compare ${r.name}`} checked={isOn} aria-disabled={isFull || undefined} title={isFull ? `At most ${bounds.most} runs are compared` : undefined} onChange={() => choose(r.name)} />;
    },
  };
}

/** The runs of experiments that the answering node can read. */
export function Experiments() {
  const { q = "", runs = [], compare, column } = useSearch({ from: "/shell/experiments" });
  const navigate = useNavigate({ from: "/experiments" });
  const list = useQuery(queries.experiments());
  const words = q.toLowerCase();
  if (compare && runs.length >= bounds.least) return <Compare names={runs} column={column} />;
  const choose = (run: string) => void navigate({ search: (s) => ({ ...s, runs: toggled(runs, run) }), replace: true });
  const why = runs.length < bounds.least ? `choose ${bounds.least} to ${bounds.most} runs by their boxes` : undefined;
  return (
    <Page title="Experiments" purpose="Runs on the emulated wide area, with their results and the command that repeats each." actions={list.data ? <CsvButtons name="experiments" columns={columns} rows={list.data.items} /> : null}>
      <div role="search" aria-label="Filter the runs" className="flex flex-wrap items-center gap-2">
        <input data-filter className="field" aria-label="Name, topology, state or revision" placeholder="Filter the runs…" defaultValue={q} onChange={(e) => void navigate({ search: (s) => ({ ...s, q: e.target.value || undefined }), replace: true })} />
        <Button why={why} onClick={() => void navigate({ search: (s) => ({ ...s, compare: true }) })}>Compare</Button>
        <span role="status" className="text-faint">{runs.length > 0 ? `${plural(runs.length, "run")} chosen${runs.length === bounds.most ? ", which is the most" : ""}` : ""}</span>
        {runs.length > 0 ? <Button kind="quiet" onClick={() => void navigate({ search: (s) => ({ ...s, runs: undefined }) })}>Choose none</Button> : null}
      </div>
      <Card flush>
        <Shown query={list} what="the runs">
          {(l) => {
            const rows = l.items.filter((r) => [r.name, r.topology, r.state, r.version].join(" ").toLowerCase().includes(words));
            if (rows.length > 0) return <Table label="Runs" header="name" columns={[chosenColumn(runs, choose), ...columns]} rows={rows} rowKey={(r) => r.name} />;
            if (l.items.length > 0) return <Empty title="No run matches" action={<Button onClick={() => void navigate({ search: (s) => ({ ...s, q: undefined }) })}>Clear the filter</Button>} />;
            if (!l.folder) return <Empty title="This node is told of no runs">Name the folder of the runs as <Code>experiments</Code> in the node's configuration.</Empty>;
            return <Empty title="No run yet" action={<Command>{`cartwheel-testbed run coordinates --short --set live=0 --out ${quote(l.folder)}`}</Command>}>An experiment writes a folder for each of its runs into {l.folder}.</Empty>;
          }}
        </Shown>
      </Card>
    </Page>
  );
}

/** One run. */
export function ExperimentDetail() {
  const { run } = useParams({ from: "/shell/experiments/$run" });
  const detail = useQuery(queries.experiment(run));
  return (
    <Page title={run} trail={[{ name: "Experiments", to: "/experiments" }]} purpose={detail.data?.title}>
      <Shown query={detail} what="the run">{(r) => <Body run={r} />}</Shown>
    </Page>
  );
}

function Body({ run: r }: { run: Run }) {
  return (
    <>
      <Card title="The run">
        <Facts items={[["State", <span key="s"><Pill tone={tones[r.state]}>{r.state}</Pill> {r.reason ? sentence(r.reason) : ""}</span>], ["Set-up", r.set_up], ["Started", <Age key="a" at={r.started_at} />], ["Took", span(r.took_ms)], ["Sites", r.sites.join(", ") || "no topology"], ["Seed", r.seed], ["Revision", r.version], ["Notes", r.notes.join(" ") || "none"]]} />
      </Card>
      {r.arguments.length > 0 ? <Card title="Repeat it"><Command>{r.arguments.map(quote).join(" ")}</Command></Card> : null}
      {r.cut_short ? <p role="status">Not everything is shown: the run's folder has more.</p> : null}
      {r.tables.map((t) => {
        const rows = t.rows.map((cells, i) => ({ cells: cells ?? [], id: String(i) }));
        const cols = t.columns.map((c, i): Column<(typeof rows)[number]> => ({
          id: String(i),
          name: [c.name, c.unit].filter(Boolean).join(", ") + (c.source ? " (not measured here)" : ""),
          value: ({ cells }) => (typeof cells[i] === "number" || typeof cells[i] === "string" ? cells[i] : undefined),
          cell: ({ cells }) => figure(cells[i]),
          figure: rows.every(({ cells }) => typeof cells[i] !== "string"),
        }));
        return (
          <Card key={t.name} title={t.title || t.name} flush aside={<CsvButtons name={`${r.name} ${t.name}`} columns={cols} rows={rows} />}>
            <Table label={t.title || t.name} columns={cols} rows={rows} rowKey={(x) => x.id} />
          </Card>
        );
      })}
      {r.figures.map((f) => (
        <Card key={f.file} title={f.title}>
          <img className="w-full max-w-3xl bg-white" alt={f.title} src={`${base}/experiments/${encodeURIComponent(r.name)}/figures/${encodeURIComponent(f.file)}`} />
        </Card>
      ))}
    </>
  );
}
