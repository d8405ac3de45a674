// Package cartwheel is the client library: the whole tree as a
// mount.FileSystem, over names and attributes cached under leases (names), the
// bytes of files (content), and operations that reach the active of each slice
// exactly once (route, session). It stores nothing itself, and knows kernels
// only through package mount. A Client is safe for use by many goroutines;
// Close joins all of its own.
//
// The parts have packages of their own below this one. A part takes other parts and
// functions, never the Client. What it has to guard, it guards by a lock of its own:
//
//	calls        sends requests to actives, and has the caches learn the answers
//	resolve      finds out what names mean
//	creation     makes objects, here or at an active
//	deferred     publishes new files that were made here
//	destination  chooses the slice of a new object
//	holds        releases the files that lost their names while they were open
//	xattrs       has the extended attributes
//	listing      reads directories page by page
//	opens        does what an open needs before it is answered
//	commits      makes written ranges part of files
//	owed         keeps the files whose ctime their next commit moves
//	recovery     has the cache folder, and commits what a crash left in its journal
//	transfer     carries the bytes of files
//	prefetch     asks for what may be needed next
//	locks        takes, claims and gives up advisory locks
//	inodes       keeps what the kernel knows, and tells it what is old
//	replies      turns attributes and names into what the kernel is answered
//	revocation   gives up what leases covered
//	past         shows the tree as it was, below .Snapshot
//	traced       counts what the operations of a mount cost
//	tickets      keeps what nodes sealed for a user
//	remembered   keeps what nodes said, for where none answers in time
//	receipts     keeps what actives said of writes
//	space        answers statfs
//	timeouts     bounds calls to nodes
//
// Lock order: the node table, then files that are pending, then names; what was
// refused comes last. A lock of a part is held over no call of another part, but
// where the part says so. No lock but that of an open directory is held across a
// call to a node.
package cartwheel

import (
	"cartwheel.dev/clients/cartwheel/alone"
	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/creation"
	"cartwheel.dev/clients/cartwheel/deferred"
	"cartwheel.dev/clients/cartwheel/holds"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/cartwheel/listing"
	"cartwheel.dev/clients/cartwheel/locks"
	"cartwheel.dev/clients/cartwheel/opens"
	"cartwheel.dev/clients/cartwheel/recovery"
	"cartwheel.dev/clients/cartwheel/replies"
	"cartwheel.dev/clients/cartwheel/resolve"
	"cartwheel.dev/clients/cartwheel/revocation"
	"cartwheel.dev/clients/cartwheel/space"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/cartwheel/transfer"
	"cartwheel.dev/clients/cartwheel/xattrs"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/trace"
)

// Client is one mount's view of the tree.
type Client struct {
	connection
	opt      Options
	life     *lifetime
	limits   *timeouts.Limits
	recorder *trace.Recorder

	// What the kernel knows and has open.
	nodes      *inodes.Table
	kernel     *inodes.Kernel
	handles    handles
	replies    *replies.Builder
	revocation *revocation.Handler

	// Names and attributes.
	names    *names.Cache
	calls    *calls.Sender
	resolver *resolve.Resolver
	lists    *listing.Reader
	maker    *creation.Maker
	deferred *deferred.Publisher
	alone    *alone.Actor
	holds    *holds.Releaser
	xattrs   *xattrs.Service
	space    *space.Gauge

	// What is in files.
	engine   *content.Engine // nil until the client is connected
	chunks   *transfer.Service
	opens    *opens.Opener
	locks    *locks.Keeper
	recovery *recovery.Recoverer // likewise
}

// Init implements mount.FileSystem.
func (c *Client) Init(n mount.Notifier) { c.kernel.Mount(n) }

// Destroy implements mount.FileSystem; Close does the rest.
func (c *Client) Destroy() { c.kernel.Unmount() }
