// Package cockroach is the geoconfig.Store in a database: CockroachDB for every
// real deployment, and PostgreSQL by the same SQL. Several processes may have
// one database open. It is no consensus of our own: what the database
// acknowledged is what Apply acknowledges. It never creates tables on opening;
// schema.Migrate does, and cartwheel geo-config init runs it.
//
// # The order of revisions
//
// The contract wants one order: revisions rise, audit records are counted
// without gaps, and Read shows all rows as of one revision. Follow must never
// meet a revision that becomes visible after a higher one. A sequence does not
// give that: it hands out 5 and 6, and 6 commits first.
//
// So each writing transaction changes the one line of table state, which has the
// last revision, and gets its revisions from it. Two such transactions conflict
// on that line:
//
//   - CockroachDB at SERIALIZABLE lays an intent on the line, and a concurrent
//     transaction waits for it or restarts (40001). Their commits are ordered as
//     their changes of the line are.
//   - PostgreSQL locks the line until the commit, and fails a concurrent
//     transaction whose snapshot is older (40001). To queue instead of failing,
//     the transaction takes the table's lock before its snapshot.
//
// The rows, their revisions and the line become visible at once, with the
// commit. A reader sees one snapshot, so if it sees revision n in the line, it
// sees every change up to n, and none above. That is all that Follow needs.
//
// The same line settles a commit whose answer was lost (40003, or a broken
// connection). The repetition reads the table of applied keys after it has the
// line. By then the lost commit has happened or never will.
//
// # What the order costs
//
// A line that all writers change would allow one batch for each commit, which
// takes a round trip between regions. Therefore a store commits in groups: the
// batches that arrive while a transaction is under way go into the next one
// together. Each batch still gets its own revision and its own verdict.
// Transactions follow one another; callers do not. Only one goroutine of a process writes, so a process never conflicts
// with itself. Processes should be few: nodes reach the database through
// geo-config servers.
//
// # Following
//
// Follow polls the line, once for all followers of the process, and only while
// there are any. A batch that this process applied ends their wait at once.
// LISTEN/NOTIFY does not exist on CockroachDB. A changefeed on CockroachDB would
// spare the polls; it is left out, since polling one line every Options.Poll is
// cheap and works everywhere.
//
// Like every store it is safe for concurrent use.
package cockroach
