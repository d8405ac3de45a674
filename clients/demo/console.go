package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cartwheel.dev/clients/bootstrap"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/supervisor"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/people"
)

// ConsoleName is what fail and heal call the console's gateway.
const ConsoleName = "console"

// nobody is the uid and gid by which the gateway uses the tree: it shows what
// everybody may read, and changes what everybody may write.
const nobody = 65534

// linkLife is for how long the sign-in link counts that the demo prints.
const linkLife = time.Hour

// Console is how the demo serves the console; without Gateway it does not.
type Console struct {
	Gateway string // program
	Dir     string // the built console
	Missing string // what has to be done to have a console; empty: none is wanted
	// Folder is the name of a folder in the root directory, which the demo makes and
	// the gateway's user may write; empty: none.
	Folder string
}

// ConsoleState is the console in demo.json.
type ConsoleState struct {
	URL string `json:"url"`
	PID int    `json:"pid"`
	Log string `json:"log"`
}

// consoleOf is the console of a running demo.
type consoleOf struct {
	listen  string // kept over a restart; empty: there is no console
	gateway *supervisor.Child
	link    string // signs in, once; empty: none could be made
	noLink  error  // why not
}

func (c *consoleOf) url() string { return "http://" + c.listen }

// chooseConsole finds a port, so that the administrator's file can name it.
func (d *Demo) chooseConsole() error {
	if d.opt.Console.Gateway == "" {
		return nil
	}
	port, err := d.ports.Take()
	if err != nil {
		return err
	}
	d.console.listen = fmt.Sprintf("127.0.0.1:%d", port)
	return fault.Wrap(fault.IO, "demo.chooseConsole", ConsoleName, os.MkdirAll(d.path(ConsoleName), 0o700))
}

// consoleUsers is the gateway's user, where there is a gateway. It is no trusted
// host's: through the gateway everybody would act as root.
func (d *Demo) consoleUsers() ([]geoconfig.User, error) {
	if d.console.listen == "" {
		return nil, nil
	}
	key, err := bootstrap.Identity(d.path(ConsoleName, "user.key"))
	return []geoconfig.User{{Name: ConsoleName, Key: key, UID: nobody, GIDs: []uint32{nobody}}}, err
}

// startConsole starts the gateway. It speaks plain http on a loopback address,
// which browsers trust as they do https, and which needs no certificate.
func (d *Demo) startConsole(ctx context.Context) (err error) {
	file, err := contact.Load(d.contact)
	if err != nil {
		return err
	}
	file.UserKey = d.path(ConsoleName, "user.key")
	contacts := d.path(ConsoleName, "contact.json")
	if err := file.Save(contacts); err != nil {
		return fault.Wrap(fault.IO, "demo.startConsole", contacts, err)
	}
	words := []string{"run", "--contact", contacts, "--console", d.opt.Console.Dir, "--listen", d.console.listen,
		"--data", d.path(ConsoleName, "data"), "--log-format", "text"}
	for _, s := range d.sites {
		words = append(words, "--node", s.id+"="+s.api)
	}
	d.console.gateway, err = d.spawn(ConsoleName, ConsoleName, d.path("console.log"), "", d.opt.Console.Gateway, words...)
	if err != nil {
		return err
	}
	_, err = d.console.gateway.Ready(ctx)
	return err
}

// makeFolder makes the folder in which people may change something by the console.
func (d *Demo) makeFolder(ctx context.Context) error {
	if d.opt.Console.Folder == "" {
		return nil
	}
	return bootstrap.OpenFolder(ctx, d.contact, d.opt.Console.Folder, nobody, nobody)
}

// makeLink makes the link that signs the first administrator in. Where the data
// were kept, that account may be gone: then people sign in as they are used to.
func (d *Demo) makeLink(ctx context.Context) error {
	admin, err := bootstrap.LoadAdmin(d.adminFile())
	if err != nil {
		return err
	}
	token, err := bootstrap.SignInLink(ctx, admin, userName, linkLife)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Permission) {
		d.console.noLink = err
		return nil
	}
	if err == nil {
		d.console.link = people.LinkURL(d.console.url(), token)
	}
	return err
}

func (d *Demo) adminFile() string { return filepath.Join(filepath.Dir(d.contact), bootstrap.AdminName) }

// welcomeConsole says where the console is and how to sign in, or what is missing.
func (d *Demo) welcomeConsole() {
	c := &d.console
	switch {
	case c.listen != "" && c.link != "":
		d.say("The console: %s", c.url())
		d.say("Open this link in a browser to sign in. It works once, within %.0f minutes:", linkLife.Minutes())
		d.say("  %s", c.link)
		d.say("  %s console link %s --admin %s    (makes another one)", d.opt.Cartwheel, people.FirstAccount, d.adminFile())
	case c.listen != "":
		d.say("The console: %s", c.url())
		d.say("No sign-in link was made: %v", c.noLink)
	case d.opt.Console.Missing != "":
		d.say("The console does not run: %s", d.opt.Console.Missing)
	default:
		return
	}
	if c.listen != "" && d.opt.Console.Folder != "" {
		d.say("Operators can upload to the folder %s, and change what is in it.", d.opt.Console.Folder)
	}
	d.say("")
}

func (d *Demo) healConsole(ctx context.Context) error {
	if d.console.listen == "" {
		return fault.E(fault.NotFound, "demo.heal", ConsoleName, "this demo was started without one")
	}
	if d.console.gateway.Running() {
		return nil
	}
	if err := d.startConsole(ctx); err != nil {
		return err
	}
	d.say("started the gateway of the %s again", ConsoleName)
	return nil
}
