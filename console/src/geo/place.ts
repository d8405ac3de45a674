import { cities, type City } from "./cities";

/** A place on the globe, in degrees. */
export interface Place {
  lat: number;
  lon: number;
}

const byName = new Map<string, City[]>();
for (const city of cities) byName.set(city.name, [...(byName.get(city.name) ?? []), city]);

/** A text in small letters without marks, as the table of cities has names. */
function plain(text: string): string {
  return text
    .normalize("NFD")
    .replace(/[\u0300-\u036f]/g, "")
    .toLowerCase()
    .replaceAll("ø", "o")
    .replaceAll("ł", "l")
    .replaceAll("ß", "ss")
    .replace(/[.'’]/g, "")
    .replace(/[\s_-]+/g, " ")
    .trim();
}

/** Where a site is: where its location says, or else where the city of its name is. */
export function placeOfSite(site: { name: string; location?: string | undefined }): (Place & { by: "location" | "name" }) | undefined {
  const said = placeOf(site.location);
  if (said) return { ...said, by: "location" };
  const named = site.location ? undefined : placeOf(site.name);
  return named ? { ...named, by: "name" } : undefined;
}

/** Where a location is: "52.37, 4.90", "Amsterdam", "Cambridge, US". Undefined: nobody knows. */
export function placeOf(location: string | undefined): Place | undefined {
  if (!location) return undefined;
  const numbers = /^\s*(-?\d{1,2}(?:\.\d+)?)\s*[,; ]\s*(-?\d{1,3}(?:\.\d+)?)\s*$/.exec(location);
  if (numbers) {
    const lat = Number(numbers[1]);
    const lon = Number(numbers[2]);
    return Math.abs(lat) <= 90 && Math.abs(lon) <= 180 ? { lat, lon } : undefined;
  }
  const parts = location.split(/[,/()]/).map(plain).filter(Boolean);
  for (const part of parts) {
    const found = byName.get(part);
    if (!found) continue;
    return found.find((city) => parts.includes(city.country)) ?? found[0];
  }
  return undefined;
}
