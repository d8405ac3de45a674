package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/geo/join"
)

// joinCmd adds this machine to a cluster.
type joinCmd struct {
	Token   string `arg:"" help:"What \"cartwheel cluster token\" printed; - reads it from standard input."`
	Address string `required:"" help:"The IP address at which the other nodes and the clients reach this machine."`
	Port    int    `default:"7400" help:"TCP port to listen on."`
	Data    string `default:"/var/lib/cartwheel/node" type:"path" help:"The node's directory."`
	Config  string `default:"/etc/cartwheel/node.yaml" type:"path" help:"Configuration file to write."`
}

// joinLimit bounds the talk with geo-config.
const joinLimit = 30 * time.Second

// Run implements the command.
func (c *joinCmd) Run(ctx context.Context, stdio Stdio) error {
	text, err := c.token(stdio)
	if err != nil {
		return err
	}
	token, err := join.Parse(text)
	if err != nil {
		return err
	}
	file := join.NodeFile{Data: c.Data, Site: token.Site, Address: c.Address, Port: c.Port, GeoConfig: token.GeoConfig}
	if err := file.Check(c.Config); err != nil {
		return err
	}
	key, err := loadKey(c.Data)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, joinLimit)
	defer cancel()
	row := geoconfig.Node{ID: ids.Node(key.KeyID()), Site: token.Site, Addresses: []string{file.Advertise()}}
	if err := join.Redeem(ctx, token, row, time.Now()); err != nil {
		return err
	}
	if err := file.Write(c.Config); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdio.Out, "This machine is node %s at %s.\nStart it:  cartwheeld node --config %s\n", row.ID, token.Site, c.Config)
	return fault.Wrap(fault.IO, "daemon.join", "standard output", err)
}

// token returns the token's text. On standard input it shows in no list of
// processes.
func (c *joinCmd) token(stdio Stdio) (string, error) {
	if c.Token != "-" {
		return c.Token, nil
	}
	var line [8192]byte
	n, err := stdio.In.Read(line[:])
	if n == 0 {
		return "", fault.Wrap(fault.Usage, "daemon.join", "standard input", errors.Join(err, fault.E(fault.Usage, "daemon.join", "", "has no token")))
	}
	return string(line[:n]), nil
}
