package daemon

import (
	"fmt"
	"os"
	"path/filepath"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire"
)

// keyFile is the private key in a data directory.
const keyFile = "node.key"

// keyCmd makes and names a data directory's key.
type keyCmd struct {
	Data string `help:"The node's directory." required:"" type:"existingdir"`
}

func (c *keyCmd) run(stdio Stdio) error {
	key, err := wire.MakeKey(filepath.Join(c.Data, keyFile))
	if err != nil {
		return fault.Wrap(fault.IO, "daemon.key", c.Data, err)
	}
	_, err = fmt.Fprintln(stdio.Out, key.KeyID())
	return err
}

// loadKey reads or makes the node's key, and its directory.
func loadKey(dir string) (wire.Key, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return wire.Key{}, &fault.Error{Kind: fault.Permission, Op: "daemon.loadKey", Subject: dir, Public: "the data directory cannot be made", Cause: err}
	}
	return wire.MakeKey(filepath.Join(dir, keyFile))
}
