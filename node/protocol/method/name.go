package method

import (
	"strconv"

	"cartwheel.dev/node/wire"
)

// Name returns a method's name, for people: lower case.
func Name(m wire.Method) string {
	switch m {
	case Hello:
		return "hello"
	case KeepAlive:
		return "keepalive"
	case Revoke:
		return "revoke"
	case Claim:
		return "claim"
	case Lock:
		return "lock"
	case Operate:
		return "operate"
	case Resolve:
		return "resolve"
	case List:
		return "list"
	case GetAttr:
		return "getattr"
	case Statfs:
		return "statfs"
	case Place:
		return "place"
	case Rows:
		return "rows"
	case Files:
		return "files"
	case Have:
		return "have"
	case Put:
		return "put"
	case Get:
		return "get"
	case Range:
		return "range"
	case Where:
		return "where"
	}
	return "method " + strconv.Itoa(int(m))
}
