import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { answered, match } from "../api/call";
import { addSite, removeSite, setSite } from "../api/generated";
import type { Site } from "../api/model";
import { siteCommand } from "../api/operate";
import { useLacks } from "../api/session";
import { Button, Copy } from "../ui/kit";
import { ChangeFailure } from "../ui/states";
import { Confirmed } from "./People";

/** Adds a site. */
export function NewSite({ taken }: { taken: Site[] }) {
  const lacks = useLacks("administrator");
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [location, setLocation] = useState("");
  const add = useMutation({
    mutationFn: () => answered(addSite({ body: { name, ...(location ? { location } : {}) } })),
    onSuccess: () => {
      setName("");
      setLocation("");
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["sites"] }),
  });
  const why = lacks ?? (!name ? "write a name" : !/^[\w-]+$/.test(name) ? "a name has letters, digits, _ and -" : taken.some((s) => s.name === name) ? `${name} is a site already` : undefined);
  return (
    <form
      className="flex flex-wrap items-center gap-2 border-t border-line px-4 py-3"
      onSubmit={(e) => {
        e.preventDefault();
        if (!why) add.mutate();
      }}
    >
      <input className="field" aria-label="Name of the new site" placeholder="New site…" maxLength={63} value={name} onChange={(e) => setName(e.target.value.trim())} />
      <input className="field min-w-48 grow" aria-label="Where the new site is" placeholder="City, or “lat, lon”" maxLength={200} value={location} onChange={(e) => setLocation(e.target.value)} />
      <Button type="submit" why={why} busy={add.isPending} onClick={() => undefined}>Add the site</Button>
      {name ? <Copy text={siteCommand("add", name, location)} label="Copy as command" /> : null}
      {why && (name || lacks) ? <span className="text-[0.9rem] text-faint">Not now: {why}.</span> : null}
      {add.error ? <ChangeFailure error={add.error} /> : null}
    </form>
  );
}

/** Says where a site is. */
export function SiteLocation({ site }: { site: Site }) {
  const lacks = useLacks("administrator");
  const client = useQueryClient();
  const [seen, setSeen] = useState(site);
  const [location, setLocation] = useState(site.location ?? "");
  const save = useMutation({
    mutationFn: () => answered(setSite({ path: { name: site.name }, headers: { "If-Match": match(seen.revision) }, body: { location } })),
    onSettled: () => client.invalidateQueries({ queryKey: ["sites"] }),
  });
  // A row that somebody else changed is taken over while nothing is being written here.
  if (site.revision !== seen.revision && (location === (seen.location ?? "") || location === (site.location ?? ""))) {
    setSeen(site);
    setLocation(site.location ?? "");
  }
  const why = lacks ?? (location === (seen.location ?? "") ? "it says so already" : undefined);
  return (
    <form
      className="mt-3 flex flex-wrap items-center gap-2 border-t border-line pt-3"
      onSubmit={(e) => {
        e.preventDefault();
        if (!why) save.mutate();
      }}
    >
      <input className="field w-full" aria-label="Location" placeholder="City, or “lat, lon”" maxLength={200} readOnly={lacks !== undefined} value={location} onChange={(e) => setLocation(e.target.value)} />
      <Button type="submit" why={why} busy={save.isPending} onClick={() => undefined}>Save</Button>
      <Copy text={siteCommand("set", site.name, location)} label="Copy as command" />
      {save.error ? (
        <ChangeFailure
          error={save.error}
          onReload={() => {
            setSeen(site);
            setLocation(site.location ?? "");
            save.reset();
          }}
        />
      ) : null}
    </form>
  );
}

/** Removes a site at which no node stands. */
export function RemoveSite({ site }: { site: Site }) {
  const lacks = useLacks("administrator");
  const client = useQueryClient();
  const navigate = useNavigate();
  const remove = useMutation({
    mutationFn: () => answered(removeSite({ path: { name: site.name }, headers: { "If-Match": match(site.revision) } })),
    onSuccess: () => navigate({ to: "/sites" }),
    onSettled: () => client.invalidateQueries({ queryKey: ["sites"] }),
  });
  return (
    <div className="mt-3 flex flex-wrap items-center gap-2">
      <Confirmed kind="Remove" name={site.name} why={lacks ?? (site.nodes.length > 0 ? "nodes stand here: drain and remove them first" : undefined)} run={() => remove.mutate()} />
      <Copy text={siteCommand("remove", site.name)} label="Copy as command" />
      {remove.error ? <ChangeFailure error={remove.error} /> : null}
    </div>
  );
}
