package disk

// Site names a place in the store where the disk is asked to change or fetch
// something, so that a test can fail or stop exactly there.
type Site string

// The sites. Every one has a fault test; a test checks that it has.
const (
	MarkerDir    Site = "marker.dir"
	MarkerOpen   Site = "marker.open"
	MarkerWrite  Site = "marker.write"
	MarkerSync   Site = "marker.sync"
	MarkerRename Site = "marker.rename"
	MarkerPublic Site = "marker.syncdir"

	BallastOpen     Site = "ballast.open"
	BallastAllocate Site = "ballast.allocate"

	JournalDir      Site = "journal.dir"
	JournalOpen     Site = "journal.open"
	JournalAllocate Site = "journal.allocate"
	JournalZero     Site = "journal.zero"
	JournalSync     Site = "journal.sync"
	JournalSyncDir  Site = "journal.syncdir"
	JournalHeader   Site = "journal.header"
	JournalAppend   Site = "journal.append"

	PackDir      Site = "pack.dir"
	PackOpen     Site = "pack.open"
	PackAllocate Site = "pack.allocate"
	PackHeader   Site = "pack.header"
	PackWrite    Site = "pack.write"
	PackSync     Site = "pack.sync"
	PackSyncDir  Site = "pack.syncdir"
	PackRemove   Site = "pack.remove"
	IndexOpen    Site = "pack.index.open"
	IndexWrite   Site = "pack.index.write"
	IndexSync    Site = "pack.index.sync"
	IndexRename  Site = "pack.index.rename"
	IndexRemove  Site = "pack.index.remove"
)

// Sites returns every site, for the tests.
func Sites() []Site {
	return []Site{
		MarkerDir, MarkerOpen, MarkerWrite, MarkerSync, MarkerRename, MarkerPublic,
		BallastOpen, BallastAllocate,
		JournalDir, JournalOpen, JournalAllocate, JournalZero, JournalSync, JournalSyncDir, JournalHeader, JournalAppend,
		PackDir, PackOpen, PackAllocate, PackHeader, PackWrite, PackSync, PackSyncDir, PackRemove,
		IndexOpen, IndexWrite, IndexSync, IndexRename, IndexRemove,
	}
}
