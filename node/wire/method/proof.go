package method

// HelloProof returns what a client signs with its user's key to show that it
// holds it: bound to both ends of the connection, so that nobody can pass it
// on. Client and node are peer IDs in text form.
func HelloProof(client, node string) []byte {
	return []byte("cartwheel hello 1\n" + client + "\n" + node + "\n")
}

// ProtocolVersion is the newest that this code speaks; Hello carries it.
const ProtocolVersion = 1
