import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import type { NetworkNode } from "../api/model";
import { millis, shortId } from "../format";
import { CsvButtons, JsonButton } from "../ui/Csv";
import { Age, Card, Code, Pill } from "../ui/kit";
import { type Column, Table } from "../ui/Table";

const size = { width: 720, height: 420 };

/** The nodes that have a coordinate, on the two axes along which they differ the most. */
function project(nodes: NetworkNode[]) {
  const known = nodes.filter((n) => n.coordinate && n.coordinate.vector_ms.length > 0);
  const dims = Math.max(0, ...known.map((n) => n.coordinate!.vector_ms.length));
  const range = (d: number) => {
    const values = known.map((n) => n.coordinate!.vector_ms[d] ?? 0);
    return Math.max(...values) - Math.min(...values);
  };
  const axes = Array.from({ length: dims }, (_, d) => d).sort((a, b) => range(b) - range(a));
  const [x = 0, y = 1] = axes;
  const points = known.map((n) => ({ node: n, x: n.coordinate!.vector_ms[x] ?? 0, y: n.coordinate!.vector_ms[y] ?? 0 }));
  const xs = points.map((p) => p.x);
  const ys = points.map((p) => p.y);
  const middle = { x: (Math.min(...xs) + Math.max(...xs)) / 2, y: (Math.min(...ys) + Math.max(...ys)) / 2 };
  const wide = Math.max(0.0002, (Math.max(...xs) - Math.min(...xs)) / (size.width - 160), (Math.max(...ys) - Math.min(...ys)) / (size.height - 130));
  return { scale: 1 / wide, dims, points: points.map((p) => ({ ...p, x: size.width / 2 + (p.x - middle.x) / wide, y: size.height / 2 + (p.y - middle.y) / wide })) };
}

const columns: Column<NetworkNode>[] = [
  { id: "id", name: "Node", value: (n) => n.id, cell: (n) => <Link to="/nodes/$id" params={{ id: n.id }} className="link"><Code>{shortId(n.id)}</Code></Link> },
  { id: "site", name: "Site", value: (n) => n.site, cell: (n) => n.site },
  { id: "reachable", name: "State", value: (n) => String(n.reachable), cell: (n) => <Pill tone={n.reachable ? "ok" : "bad"}>{n.reachable ? "Answers" : "Silent"}</Pill> },
  { id: "vector", name: "Vector", cell: (n) => n.coordinate?.vector_ms.map((v) => v.toFixed(2)).join(", ") ?? "not known" },
  { id: "height", name: "Height", figure: true, value: (n) => n.coordinate?.height_ms, cell: (n) => millis(n.coordinate?.height_ms) },
  { id: "error", name: "Error", figure: true, value: (n) => n.coordinate?.error, cell: (n) => (n.coordinate ? `${(n.coordinate.error * 100).toFixed(0)} %` : millis(undefined)) },
  { id: "age", name: "As of", value: (n) => n.as_of_at, cell: (n) => <Age at={n.as_of_at} /> },
];

/** What the nodes are as a file: each axis has a column. */
function fileColumns(dims: number): Column<NetworkNode>[] {
  const axes = Array.from({ length: dims }, (_, d): Column<NetworkNode> => ({ id: `axis${d}`, name: `Axis ${d + 1}, ms`, value: (n) => n.coordinate?.vector_ms[d], cell: () => null }));
  return [...columns, ...axes];
}

/** The nodes in the space of coordinates: a halo is the error, a stem the height. */
export function Scatter({ nodes }: { nodes: NetworkNode[] }) {
  const { points, scale, dims } = useMemo(() => project(nodes), [nodes]);
  const [lit, setLit] = useState<string>();
  const names = new Set<string>();
  return (
    <div className="flex flex-col gap-5">
      <Card title="Coordinates" aside={dims > 2 ? `the two of ${dims} axes along which nodes differ the most` : undefined} flush>
        {points.length === 0 ? (
          <p className="px-4 pb-4 text-soft">No node has a coordinate yet. They come with the first measurements.</p>
        ) : (
          <svg viewBox={`0 0 ${size.width} ${size.height}`} role="img" aria-label={`${points.length} nodes in the space of coordinates; the table below has the same`} className="block max-h-[30rem] w-full">
            <ScaleBar scale={scale} />
            {points.map(({ node, x, y }) => {
              const label = !names.has(node.site) || lit === node.id;
              names.add(node.site);
              const c = node.coordinate!;
              return (
                <g key={node.id} transform={`translate(${x} ${y})`} onPointerEnter={() => setLit(node.id)} onPointerLeave={() => setLit(undefined)} className={node.reachable ? "text-accent" : "text-bad"}>
                  <circle r={9 + Math.min(1, c.error) * 40} fill="currentColor" opacity={lit === node.id ? 0.2 : 0.09} />
                  <path d={`M0 0v${-Math.min(70, c.height_ms * scale)}`} stroke="currentColor" strokeWidth="1.5" />
                  <circle r="5" fill="currentColor" className="stroke-surface" strokeWidth="1.5" />
                  {label ? (
                    <text x="10" y="4" className="fill-ink stroke-surface text-[12px]" strokeWidth="3" paintOrder="stroke">
                      {node.site}
                      {lit === node.id ? ` ${shortId(node.id)}` : ""}
                    </text>
                  ) : null}
                </g>
              );
            })}
          </svg>
        )}
      </Card>
      <Card title="The same as a table" flush aside={<><CsvButtons name="coordinates" columns={fileColumns(dims)} rows={nodes} /><JsonButton name="coordinates" rows={nodes} /></>}>
        <Table label="Coordinates" columns={columns} rows={nodes} rowKey={(n) => n.id} />
      </Card>
    </div>
  );
}

function ScaleBar({ scale }: { scale: number }) {
  const steps = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500];
  const ms = steps.findLast((s) => s * scale <= 160) ?? steps[0]!;
  return (
    <g transform={`translate(24 ${size.height - 22})`} className="text-edge">
      <path d={`M0-4v4h${ms * scale}v-4`} fill="none" stroke="currentColor" />
      <text x={ms * scale + 8} y="2" className="fill-faint text-[11px]">
        {millis(ms)}
      </text>
    </g>
  );
}
