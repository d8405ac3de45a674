// Package api is the admin HTTP API that each node serves at an address of its
// own: what the console and programs read of a cluster, and what they change. It
// has the routes, the roles that they need, and the changes; package reads answers
// what changes nothing. It decides nothing about data and stands beside the data
// path: its memory, its calls and its streams are bounded, and it takes no lock
// that an operation waits for. A Server is safe for concurrent use.
//
// Base path: /api/v1. openapi.json has every route with its types; TestOpenAPI
// compares it with the code. JSON is in snake_case. Times are RFC 3339 strings
// named ..._at, durations milliseconds named ..._ms, sizes bytes named ..._bytes.
// A failure is a problem document of RFC 9457 (package problem).
//
// Unknown is not zero: what a node did not say is absent, its last word carries
// its age, and the answer names the nodes that do not answer (view.Freshness).
package api
