// The availability route: what a year brings to a slice, by the policy that it has.
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { bytes, millis, span } from "../format";
import { answered } from "./call";
import { type Availability, type AvailabilityFigures, type AvailabilityRequest, predictAvailability } from "./generated";

export type { Availability, AvailabilityFigures } from "./generated";

/** Asks what to expect of a slice. Nothing is changed. */
export const availabilityQuery = (body: AvailabilityRequest) =>
  queryOptions({
    queryKey: ["availability", body],
    queryFn: ({ signal }) => answered(predictAvailability({ signal, body })),
    placeholderData: keepPreviousData,
    retry: false,
  });

/** An assumption that people may change: its value in the unit shown, times `of`, is the API's. */
export type Assumption = { key: keyof AvailabilityFigures; label: string; unit: string; of: number };

/** The assumptions that people may change. */
export const assumptions: readonly Assumption[] = [
  { key: "node_failures_per_year", label: "A node goes and comes back", unit: "a year", of: 1 },
  { key: "node_outage_ms", label: "It is away for", unit: "min", of: 60_000 },
  { key: "node_losses_per_year", label: "A node is lost for good", unit: "a year", of: 1 },
  { key: "site_outages_per_year", label: "A site cannot be reached", unit: "a year", of: 1 },
  { key: "site_outage_ms", label: "It is away for", unit: "h", of: 3_600_000 },
  { key: "site_losses_per_year", label: "A site is lost for good", unit: "a year", of: 1 },
];

/** What a person changed, in the API's units. */
export function given(values: Partial<Record<keyof AvailabilityFigures, number>>): AvailabilityFigures {
  const out: AvailabilityFigures = {};
  for (const a of assumptions) {
    const v = values[a.key];
    if (v !== undefined) out[a.key] = a.key.endsWith("_ms") ? Math.round(v * a.of) : v * a.of;
  }
  return out;
}

/** How long a slice does not serve in a year: "1 min 20 s, 1 min 8 s of it in pauses". */
export function downtime(a: Availability): string {
  if (a.downtime_ms < 500) return "less than a second";
  return `${span(a.downtime_ms)}${a.pauses_ms >= 500 ? `, ${span(a.pauses_ms)} of it in pauses` : ""}`;
}

/** How likely something is in a year: "once in 460,000 years". */
export function odds(perYear: number): string {
  if (perYear <= 0) return "never";
  const years = 1 / perYear;
  if (years < 1.5) return `${perYear.toFixed(1)} times a year`;
  if (years >= 1e9) return "less than once in a billion years";
  return `once in ${Number(years.toPrecision(2)).toLocaleString()} years`;
}

/** What is lost of a slice in a year: its chance, and bytes where there is one to speak of. */
export function loss(a: Availability): string {
  return `${odds(a.lost)}${a.lost_bytes >= 1 ? `; ${bytes(a.lost_bytes)} in the mean` : ""}`;
}

/** What the prediction rests on besides. */
export function basis(a: Availability): string {
  const f = a.assumptions;
  return `Of ${a.nodes} nodes at ${a.sites_there} ${a.sites_there === 1 ? "site" : "sites"}, as far as failures are independent. A takeover takes ${millis(f.takeover_ms)}, new copies begin after ${span(f.failed_after_ms)}.`;
}
