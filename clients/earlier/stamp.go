package earlier

// Stamp is what systems say of a file besides what fs.FileInfo has. It is zero where the
// system says nothing.
type Stamp struct {
	Number  uint64 // of the object
	Links   uint64
	Owner   [2]uint32 // uid and gid
	Changed int64     // ctime, in nanoseconds since 1970
	Device  uint64    // of a special file
}
