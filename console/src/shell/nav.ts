// The console's places, in the order of the navigation.

/** A page that the navigation leads to. */
export interface Place {
  path: string;
  name: string;
  /** The letter after g. */
  key: string;
  /** The icon's outline in a box of 20 by 20. */
  icon: string;
}

/** Groups of pages, with a line between. */
export const places: Place[][] = [
  [
    { path: "/", name: "Overview", key: "o", icon: "M3 10.5 10 4l7 6.5M5 9v7h10V9" },
    { path: "/what-if", name: "What-if", key: "w", icon: "M5 3v14M5 10h5c3 0 3-5 6-5M10 10c3 0 3 5 6 5" },
  ],
  [
    { path: "/network", name: "Network", key: "n", icon: "M4 4h3v3H4zM13 4h3v3h-3zM8.5 13h3v3h-3zM7 5.5h6M6.5 7l3 6M13.500 7l-3 6" },
    { path: "/sites", name: "Sites", key: "s", icon: "M10 17s5-4.700 5-9a5 5 0 0 0-10 0c0 4.300 5 9 5 9ZM10 9.500a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3Z" },
    { path: "/nodes", name: "Nodes", key: "d", icon: "M3.500 4h13v5h-13zM3.500 11h13v5h-13zM6 6.500h.01M6 13.500h.01" },
    { path: "/slices", name: "Slices", key: "l", icon: "M10 3l7 3.500-7 3.500-7-3.500ZM3 10l7 3.500 7-3.500M3 13.500 10 17l7-3.500" },
  ],
  [
    { path: "/operations", name: "Operations", key: "p", icon: "M4 10h3l2-5 3 10 2-5h2" },
    { path: "/activity", name: "Activity", key: "a", icon: "M10 5v5l3 2M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14Z" },
    { path: "/drills", name: "Drills", key: "r", icon: "M3 16h14M4 12l4-5 3 3 5-6M13 4h3v3" },
    { path: "/snapshots", name: "Snapshots", key: "t", icon: "M10 6.500v4l2.500 1.500M4 7a7 7 0 1 1-.700 5M3.500 3.500V7H7" },
    { path: "/clients", name: "Clients", key: "c", icon: "M3 5h14v8H3zM7 16h6M10 13v3" },
    { path: "/tree", name: "Files", key: "f", icon: "M3 5h5l2 2h7v8.500H3z" },
  ],
  [
    { path: "/experiments", name: "Experiments", key: "x", icon: "M8 3h4M9 3v5l-5 8h12l-5-8V3M6.500 12h7" },
    { path: "/database", name: "Database", key: "b", icon: "M4 5.500c0-3 12-3 12 0s-12 3-12 0v9c0 3 12 3 12 0v-9M4 10c0 3 12 3 12 0" },
    { path: "/settings", name: "Settings", key: "e", icon: "M4 6h7M15 6h1M4 14h1M9 14h7M13 4v4M7 12v4" },
  ],
];

/** All places in one list. */
export const allPlaces: Place[] = places.flat();
