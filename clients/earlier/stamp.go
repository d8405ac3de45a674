package earlier

// stamp is what systems say of a file besides what fs.FileInfo has. It is zero where the
// system says nothing.
type stamp struct {
	number  uint64 // of the object
	links   uint64
	owner   [2]uint32 // uid and gid
	changed int64     // ctime, in nanoseconds since 1970
	device  uint64    // of a special file
}
