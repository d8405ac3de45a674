package command

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire"
)

type keyCmd struct {
	File string `arg:"" help:"The key's file." type:"path"`
}

// Help shows how it is called.
func (keyCmd) Help() string {
	return help(`cartwheel key ~/.config/cartwheel/user.key

A cluster's administrator adds the printed identity to the users. The file is readable only by its owner.`)
}

// Run makes the key where there is none and says whom it names.
func (c *keyCmd) Run(e *env) error {
	const op fault.Op = "command.Run"
	if err := os.MkdirAll(filepath.Dir(c.File), 0o700); err != nil {
		return fault.FromOS(op, c.File, err)
	}
	key, err := wire.MakeKey(c.File)
	if err != nil {
		return err
	}
	return e.print(struct {
		ID   string `json:"id"`
		File string `json:"file"`
	}{key.KeyID(), c.File}, func(w io.Writer) { fmt.Fprintln(w, key.KeyID()) })
}
