import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answered, asCurl } from "../api/call";
import { probeNetwork, type ProbedLink } from "../api/generated";
import type { NetworkNode } from "../api/model";
import { useLacks } from "../api/session";
import { millis, plural, shortId } from "../format";
import { Age, Button, Card, Code, Copy, Pill } from "../ui/kit";
import { ChangeFailure } from "../ui/states";
import { type Column, Table } from "../ui/Table";

const times = 5;

function middle(list: number[]): number | undefined {
  return list.length === 0 ? undefined : [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
}

const columns: Column<ProbedLink>[] = [
  { id: "to", name: "To", value: (l) => l.to_site, cell: (l) => <>{l.to_site} <Code title={l.to}>{shortId(l.to)}</Code></> },
  { id: "least", name: "Least", figure: true, value: (l) => (l.round_trips_ms.length > 0 ? Math.min(...l.round_trips_ms) : undefined), cell: (l) => millis(l.round_trips_ms.length > 0 ? Math.min(...l.round_trips_ms) : undefined) },
  { id: "median", name: "Median", figure: true, value: (l) => middle(l.round_trips_ms), cell: (l) => millis(middle(l.round_trips_ms)) },
  { id: "all", name: "Round trips", cell: (l) => (l.error ? <Pill tone="bad">{l.error}</Pill> : l.round_trips_ms.map((ms) => millis(ms)).join(", ")) },
];

/** Has a node measure its round trips now, and shows them. */
export function Probe({ nodes }: { nodes: NetworkNode[] }) {
  const client = useQueryClient();
  const lacks = useLacks("operator");
  const [from, setFrom] = useState("");
  const body = { times, ...(from ? { from } : {}) };
  const probe = useMutation({ mutationFn: () => answered(probeNetwork({ body })), onSettled: () => client.invalidateQueries({ queryKey: ["network"] }) });
  const m = probe.data;
  return (
    <Card
      title="Measure now"
      flush={m !== undefined}
      aside={m ? <>from {m.from_site}, <Age at={m.measured_at} /></> : undefined}
    >
      <div className={`flex flex-wrap items-center gap-2 ${m ? "px-4 pb-3" : ""}`}>
        <label className="flex items-center gap-1.5 text-soft">
          From
          <select className="field" value={from} onChange={(e) => setFrom(e.target.value)}>
            <option value="">the node that answers</option>
            {nodes.map((n) => <option key={n.id} value={n.id}>{n.site} {shortId(n.id)}</option>)}
          </select>
        </label>
        <Button why={lacks} busy={probe.isPending} onClick={() => probe.mutate()}>{probe.isPending ? "Measuring…" : "Measure now"}</Button>
        {/* The command has all nodes measure: with names, only pairs among these. */}
        <Copy text={`cartwheel net probe --count ${times}`} label="Copy as command" />
        <Copy text={asCurl("/network/probe", { method: "POST", body })} label="Copy as API call" />
        <span className="text-faint">{plural(times, "round trip")} to each other node.</span>
      </div>
      {probe.error ? <div className="px-4 pb-3"><ChangeFailure error={probe.error} /></div> : null}
      {m ? <Table label="Round trips just measured" columns={columns} rows={m.links.filter((l) => l.to !== m.from)} rowKey={(l) => l.to} /> : null}
    </Card>
  );
}
