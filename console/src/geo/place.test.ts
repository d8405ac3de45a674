import { expect, test } from "vitest";
import { cities } from "./cities";
import { placeOf, placeOfSite } from "./place";

test("coordinates are read as latitude and longitude", () => {
  expect(placeOf("52.37, 4.9")).toEqual({ lat: 52.37, lon: 4.9 });
  expect(placeOf("-33.9,151.2")).toEqual({ lat: -33.9, lon: 151.2 });
  expect(placeOf("99, 4")).toBeUndefined();
});

test("cities are found by name, with marks or without", () => {
  expect(placeOf("São Paulo")?.lat).toBeCloseTo(-23.55);
  expect(placeOf("Tromsø, Norway")?.lat).toBeCloseTo(69.65);
  expect(placeOf("Hall 3, Frankfurt")?.lon).toBeCloseTo(8.68);
});

test("a country chooses between two cities of one name", () => {
  expect(placeOf("Cambridge, US")?.lon).toBeLessThan(0);
  expect(placeOf("Cambridge")?.lat).toBeCloseTo(52.21);
});

test("a place that nobody knows stays unknown", () => {
  expect(placeOf("the attic")).toBeUndefined();
  expect(placeOf("")).toBeUndefined();
});

test("a site without a location stands in the city of its name, and says so", () => {
  expect(placeOfSite({ name: "tokyo" })?.by).toBe("name");
  expect(placeOfSite({ name: "tokyo", location: "Paris" })).toMatchObject({ by: "location", lat: 48.86 });
  expect(placeOfSite({ name: "tokyo", location: "the attic" })).toBeUndefined();
});

test("every city lies on the globe and has a country", () => {
  expect(cities.length).toBeGreaterThan(300);
  for (const c of cities) {
    expect(Math.abs(c.lat), c.name).toBeLessThanOrEqual(90);
    expect(Math.abs(c.lon), c.name).toBeLessThanOrEqual(180);
    expect(c.country, c.name).toMatch(/^[a-z]{2}$/);
  }
});
