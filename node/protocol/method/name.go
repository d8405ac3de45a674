package method

import (
	"maps"
	"slices"
	"strconv"

	"cartwheel.dev/node/wire"
)

// names has the calls that a node answers, for people: lower case.
var names = map[wire.Method]string{
	Hello: "hello", KeepAlive: "keepalive", Revoke: "revoke", Claim: "claim", Lock: "lock",
	Operate: "operate", Resolve: "resolve", List: "list", GetAttr: "getattr", Statfs: "statfs", Place: "place", Rows: "rows", Files: "files", Side: "side", SideCopy: "sidecopy", Hold: "hold", History: "history", Conflicts: "conflicts",
	Have: "have", Put: "put", Get: "get", Range: "range",
	Status: "status", SliceList: "slicelist", Where: "where", HandOver: "handover", DropCaches: "dropcaches", Net: "net", Space: "space", Scrub: "scrub",
	Snapshots: "snapshots", Snapshot: "snapshot", Drill: "drill", Drills: "drills", Recall: "recall",
	Intent: "intent", Transfer: "transfer", Facts: "facts",
}

// Name returns a method's name, for people: lower case.
func Name(m wire.Method) string {
	if name, ok := names[m]; ok {
		return name
	}
	return "method " + strconv.Itoa(int(m))
}

// Named lists the methods that have a name, in order.
func Named() []wire.Method { return slices.Sorted(maps.Keys(names)) }
