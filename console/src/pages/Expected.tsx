import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { assumptions, type AvailabilityFigures, availabilityQuery, basis, downtime, given, loss, odds } from "../api/availability";
import { plural } from "../format";
import { Button, Facts } from "../ui/kit";
import { NumberField } from "../ui/NumberField";
import { Failure, Skeleton } from "../ui/states";

/** What a policy brings in a year, and the assumptions that this rests on. */
export function Expected({ level, sites, stored }: { level: number; sites: number; stored: number | undefined }) {
  const [mine, setMine] = useState<Partial<Record<keyof AvailabilityFigures, number>>>({});
  const asked = useQuery(availabilityQuery({ level, sites, ...(stored ? { stored_bytes: stored } : {}), assumptions: given(mine) }));
  const a = asked.data;
  const changed = Object.keys(mine).length;
  const set = (key: keyof AvailabilityFigures, v: number | undefined) =>
    setMine((old) => {
      const next = { ...old };
      if (v === undefined) delete next[key];
      else next[key] = v;
      return next;
    });
  return (
    <section aria-label="Expected in a year" aria-busy={asked.isFetching} className={`flex flex-col gap-2 border-t border-line pt-3 ${asked.isPlaceholderData ? "opacity-60" : ""}`}>
      <p className="font-medium">Expected in a year</p>
      {asked.error ? <Failure error={asked.error} what="what to expect" retry={() => void asked.refetch()} /> : null}
      {!a && !asked.error ? <Skeleton rows={2} label="Working it out" /> : null}
      {a && !asked.error ? (
        <Facts items={[["Downtime", downtime(a)], ["No copy left", loss(a)], ["An older one left", odds(a.outdated)]]} />
      ) : null}
      <details>
        <summary className="min-h-6 text-soft">Assumptions{changed > 0 ? ` (${plural(changed, "change")})` : ""}</summary>
        <div className="mt-2 flex flex-col gap-1.5">
          {assumptions.map((x) => {
            const usual = a?.assumptions[x.key];
            return <NumberField key={x.key} label={x.label} unit={x.unit} value={mine[x.key]} set={(v) => set(x.key, v)} {...(usual !== undefined ? { placeholder: String(Number((usual / x.of).toPrecision(3))) } : {})} />;
          })}
          {changed > 0 ? <Button kind="quiet" onClick={() => setMine({})}>Back to the usual ones</Button> : null}
          {a ? <p className="text-[0.9rem] text-faint">{basis(a)}</p> : null}
        </div>
      </details>
    </section>
  );
}
