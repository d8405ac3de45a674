package method

import (
	"encoding/binary"

	"github.com/zeebo/blake3"
)

// HelloProof returns what a client signs with its user's key to show that it
// holds it: bound to both ends of the connection, so that nobody can pass it
// on. Client and node are peer IDs in text form.
func HelloProof(client, node string) []byte {
	return []byte("cartwheel hello 1\n" + client + "\n" + node + "\n")
}

// ClientNumber is the number under which the process with a peer ID registers
// its operations, and by which nodes know its sessions, locks and open files.
// It is never 0. It follows from the key that the connection proves, so no
// client can take the number of another one.
func ClientNumber(peer string) uint64 {
	sum := blake3.Sum256([]byte("cartwheel client 1\n" + peer))
	return binary.BigEndian.Uint64(sum[:]) | 1
}

// ProtocolVersion is the newest that this code speaks; Hello carries it.
const ProtocolVersion = 1
