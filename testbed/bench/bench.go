// Package bench does the same work in several folders, in turns, and tells how
// fast each was: what a person would try before trusting a file system with a
// home directory. It measures and asserts nothing; it is run by
// `npm run bench`. A Runner is used by one goroutine; the works start their own
// and end them.
package bench

// Options are the sizes of the works.
type Options struct {
	Rounds     int   // how often everything is done in each folder
	FileBytes  int64 // of the large file
	RandomOps  int   // 4 KiB reads and overwrites
	SmallFiles int   // of SmallBytes each
	SmallBytes int
	Threads    int
	MailOps    int
	// PostmarkFiles and PostmarkTransactions are HydraFS's 50,000 and 30,000
	// at full size.
	PostmarkFiles, PostmarkTransactions int
	AndrewClients                       []int
	PgbenchScale, PgbenchSeconds        int
	Seed                                uint64
	Only                                string // a work's name, or part of it; empty: all
}

// Defaults are the full sizes: five to ten minutes a folder and round.
func Defaults() Options {
	return Options{
		Rounds: 2, FileBytes: 1 << 30, RandomOps: 20000, SmallFiles: 8000, SmallBytes: 16 << 10, Threads: 8,
		MailOps: 9000, PostmarkFiles: 50000, PostmarkTransactions: 30000, AndrewClients: []int{1, 5, 20}, PgbenchScale: 5, PgbenchSeconds: 30, Seed: 1,
	}
}
