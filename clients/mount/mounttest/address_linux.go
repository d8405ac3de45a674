package mounttest

import "unsafe"

// listAddress answers where a list begins, for a system call.
func listAddress(list []uint32) uintptr { return uintptr(unsafe.Pointer(&list[0])) }

// aligned returns n bytes at an address that a direct write takes.
func aligned(n int) []byte {
	const page = 4096
	b := make([]byte, n+page)
	at := int(-uintptr(unsafe.Pointer(&b[0])) & (page - 1))
	return b[at : at+n]
}
