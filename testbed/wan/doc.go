// Package wan is a wide area on one machine: a network namespace for every
// host, a bridge for every site, and between the sites a process of its own
// (package emulator) that holds every packet for as long as the path it takes
// would. It knows sites, hosts and paths; it knows nothing of Cartwheel, and
// starts nothing inside the hosts: that is its caller's, by Command.
//
// A Network may be used by several goroutines. It needs root and a kernel with
// network namespaces, veth, TUN and tbf; it does not need netem. All traffic
// stays within the namespaces that it made: none of them has a way out.
package wan
