import { useQuery } from "@tanstack/react-query";
import { queries } from "../api/queries";
import { Page } from "../shell/Page";
import { Age, Card, Command, Facts, Mark, Pill, Tile } from "../ui/kit";
import { Shown } from "../ui/states";

/** Geo-config: the store of the cluster's shared configuration. */
export function Database() {
  const database = useQuery({ ...queries.database(), refetchInterval: 10_000 });
  const yes = (v: boolean | undefined, good: string, bad: string) => (v === undefined ? "not known" : v ? good : bad);
  return (
    <Page title="Database" purpose="Geo-config: the shared rows of sites, nodes, slices and users.">
      <Shown query={database} what="the database">
        {(d) => (
          <>
            {d.reachable ? null : (
              <p role="status" className="flex flex-wrap items-center gap-2 rounded-[10px] border border-line bg-warn-wash px-4 py-3 text-warn">
                <Mark tone="warn" /> It does not answer{d.away_since_at ? <>; the last answer came <Age at={d.away_since_at} /></> : null}. Reads and writes of files go on; every change of the cluster waits, also those on these pages.
              </p>
            )}
            <div className="grid grid-cols-2 gap-3 lg:grid-cols-4">
              <Tile label="State" value={<Pill tone={d.reachable ? "ok" : "bad"}>{d.reachable ? "Answers" : "Silent"}</Pill>} />
              <Tile label="Kind" value={<span className="text-[1.2rem] capitalize">{d.name || "Not known"}</span>} />
              <Tile label="Revision" value={d.revision.toLocaleString()} note="the last change that this node knows" />
              <Tile label="Told" value={<span className="text-[1.2rem]"><Age at={d.as_of_at} /></span>} note="when it last described itself" />
            </div>
            <div className="grid grid-cols-1 items-start gap-5 lg:grid-cols-2">
              <Card title="What it promises">
                <Facts
                  items={[
                    ["One process", yes(d.single_point, "yes: all changes wait while it is away", "no: it goes on when one process is lost")],
                    ["Loss of power", yes(d.durable, "keeps what it acknowledged", "may lose the newest changes")],
                  ]}
                />
              </Card>
              <Card title="From a shell">
                <div className="flex flex-col gap-2">
                  <Command>cartwheel geo-config verify</Command>
                  <Command>cartwheel geo-config backup FILE</Command>
                </div>
              </Card>
            </div>
          </>
        )}
      </Shown>
    </Page>
  );
}
