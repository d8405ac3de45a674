package mounttest

import "unsafe"

// listAddress answers where a list begins, for a system call.
func listAddress(list []uint32) uintptr { return uintptr(unsafe.Pointer(&list[0])) }
