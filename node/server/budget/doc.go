// Package budget keeps the content that nodes send to other sites within the
// budgets of the configuration, and counts it. A Keeper has a line for each
// direction between its site and another one. Whoever sends content there asks the
// Keeper first and waits; operations, beacons and sessions never do.
//
// A budget holds for all nodes of both sites together. Once a second each node
// tells the others what it wants to send and what rate it keeps to, and all divide
// the rate by the same rule (group, divide).
//
// The package does not know what the bytes are, and sends nothing but reports and
// signs of life. A Keeper is safe for concurrent use.
package budget
